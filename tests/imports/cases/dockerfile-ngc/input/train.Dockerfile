FROM nvcr.io/nvidia/pytorch:24.05-py3
run pip install lightning==2.3.0
RUN pip3 install 'unclosed
