"""Everything that can be wrong with a spec, a file each, and the engine that asks them all."""

from __future__ import annotations

from dataclasses import replace

from provision.diagnostics import Diagnostic, Place, Related, Severity, Span, Where
from provision.rules import (
    cud_cuda_without_gpu,
    cud_local_version_tag,
    cud_no_torch_build,
    env_allocator_refused,
    env_folder_not_absolute,
    env_folder_unfit,
    env_variable_and_secret,
    env_variable_harmful,
    gpu_bf16_on_cpu,
    gpu_name_unknown,
    gpu_precision_beyond_card,
    gpu_precision_without_gpu,
    img_colab_cli_runtime,
    img_colab_gpu_not_offered,
    img_colab_kernel_dies,
    img_colab_one_gpu,
    img_colab_paid_gpu,
    img_colab_pinned,
    img_colab_python_differs,
    img_colab_restart,
    img_colab_runtime_ending,
    img_colab_runtime_moves,
    img_colab_runtime_unknown,
    img_colab_torch_replaced,
    img_enterprise_python,
    pkg_duplicate_package,
    pkg_index_undefined,
    pkg_index_unused,
    pkg_name_lookalike,
    pkg_name_replaced,
    pkg_release_unknown,
    pkg_torch_too_old_for_transformers,
    pkg_trainer_needs_accelerate,
    pyt_python_has_no_torch,
    ref_drive_not_mounted,
    ref_path_not_expanded,
    ref_path_relative,
    ref_path_wrong_place,
    ref_results_not_kept,
    sec_default_index_redefined,
    sec_index_without_tls,
    sec_secret_literal,
    sec_secret_unreachable,
    sec_torch_from_foreign_index,
)
from provision.rules.rule import Case, Example, Resolved, Rule, Text, explain
from provision.safe import redact, safe_line

__all__ = ["RULES", "Case", "Example", "Resolved", "Rule", "Text", "explain", "judge"]

MESSAGE_LIMIT = 400
"""Longest message in code points: a finding is read on one screen, whatever the spec holds. Our choice."""

RULES: tuple[Rule, ...] = (
    cud_local_version_tag.RULE,
    cud_no_torch_build.RULE,
    cud_cuda_without_gpu.RULE,
    gpu_name_unknown.RULE,
    gpu_precision_without_gpu.RULE,
    gpu_bf16_on_cpu.RULE,
    gpu_precision_beyond_card.RULE,
    pkg_trainer_needs_accelerate.RULE,
    pkg_torch_too_old_for_transformers.RULE,
    pkg_release_unknown.RULE,
    pkg_duplicate_package.RULE,
    pkg_name_lookalike.RULE,
    pkg_name_replaced.RULE,
    pkg_index_undefined.RULE,
    pkg_index_unused.RULE,
    pyt_python_has_no_torch.RULE,
    img_colab_python_differs.RULE,
    img_colab_runtime_unknown.RULE,
    img_colab_runtime_moves.RULE,
    img_colab_cli_runtime.RULE,
    img_colab_runtime_ending.RULE,
    img_colab_gpu_not_offered.RULE,
    img_colab_one_gpu.RULE,
    img_colab_paid_gpu.RULE,
    img_colab_kernel_dies.RULE,
    img_colab_restart.RULE,
    img_colab_pinned.RULE,
    img_colab_torch_replaced.RULE,
    img_enterprise_python.RULE,
    env_variable_harmful.RULE,
    env_folder_not_absolute.RULE,
    env_folder_unfit.RULE,
    env_variable_and_secret.RULE,
    env_allocator_refused.RULE,
    ref_path_relative.RULE,
    ref_path_wrong_place.RULE,
    ref_path_not_expanded.RULE,
    ref_drive_not_mounted.RULE,
    ref_results_not_kept.RULE,
    sec_secret_literal.RULE,
    sec_default_index_redefined.RULE,
    sec_torch_from_foreign_index.RULE,
    sec_secret_unreachable.RULE,
    sec_index_without_tls.RULE,
)


def judge(case: Case, rules: tuple[Rule, ...] = RULES) -> tuple[Diagnostic, ...]:
    """Return what the rules find, by route and id, each finding once and its text made harmless; a rule that fails is a finding too (BUG000)."""
    found = (finding for rule in rules for finding in _asked(rule, case))
    return tuple(sorted(dict.fromkeys(_harmless(finding) for finding in found), key=_order))


def _asked(rule: Rule, case: Case) -> tuple[Diagnostic, ...]:
    try:
        return tuple(rule.check(case))
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in one rule must not keep the others from speaking
        return (_failed(rule, error),)


def _failed(rule: Rule, error: Exception) -> Diagnostic:
    """Report our own fault. The text of the exception may hold values of the spec, so only its type is shown."""
    return Diagnostic(
        "BUG000",
        "rule-failed",
        Severity.ERROR,
        f"rule {rule.id} {rule.name} failed with {type(error).__name__}",
        Place(()),
        "This is a fault in provision, not in the spec; what the rule looks for was not checked.",
        "report it with the spec that shows it",
    )


def _harmless(finding: Diagnostic) -> Diagnostic:
    message, why, way_out = (_clean(text) for text in (finding.message, finding.why, finding.help))
    related = tuple(Related(other.where, _clean(other.text)) for other in finding.related)
    return replace(finding, message=message, why=why, help=way_out, related=related)


def _clean(text: str) -> str:
    text = safe_line(redact(text))
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def _order(finding: Diagnostic) -> tuple[tuple[tuple[bool, int, str], ...], str, str]:
    return _route(finding.where), finding.id, finding.message


def _route(where: Where) -> tuple[tuple[bool, int, str], ...]:
    if isinstance(where, Span):
        return ((True, where.start.offset, ""),)
    return tuple((isinstance(part, int), part if isinstance(part, int) else 0, str(part)) for part in where.route)
