"""Starts a kernel as Colab's machines do: the kernel class of google.colab, with google.colab
loaded as an extension.
"""

if __name__ == "__main__":
    from ipykernel import kernelapp

    application = kernelapp.IPKernelApp.instance(
        kernel_class="google.colab._kernel.Kernel", extensions=["google.colab"]
    )
    application.initialize()
    application.start()
