"""Everything that can be wrong with a spec, a file each, and the engine that asks them all."""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Place, Related, Severity, Span, Where
from provision.errors import ProvisionError
from provision.rules import (
    cst_over_limit,
    cud_accelerator_not_on_platform,
    cud_cuda_without_gpu,
    cud_cudnn_without_card,
    cud_default_build_unfit,
    cud_driver_not_for_card,
    cud_driver_unknown,
    cud_local_version_tag,
    cud_no_torch_build,
    cud_place_too_old,
    cud_required_driver_not_there,
    cud_required_driver_too_low,
    cud_toolkit_compiler_too_new,
    cud_toolkit_major_differs,
    cud_toolkit_missing,
    cud_toolkit_not_released,
    cud_toolkit_unused,
    cud_toolkit_without_card,
    env_devices_hidden,
    env_rank_set_by_hand,
    env_rendezvous_set_by_hand,
    gcp_disk,
    gcp_driver_off,
    gcp_gpu_count,
    gcp_gpu_not_on_workbench,
    gcp_idle_shutdown,
    gcp_instance_name,
    gcp_label,
    gcp_lifetime_missing,
    gcp_machine_lacks_gpu,
    gcp_machine_type_unknown,
    gcp_machine_withheld,
    gcp_managed_euc,
    gcp_metadata,
    gcp_region_mismatch,
    gcp_resource_name,
    gcp_service_account,
    gcp_tag,
    gcp_verification_cut_short,
    gcp_zone_lacks_gpu,
    gcp_zone_name,
    gpu_bf16_on_cpu,
    gpu_capability_beyond_card,
    gpu_card_not_in_build,
    gpu_fp16_without_tensor_cores,
    gpu_mps_precision,
    gpu_name_unknown,
    gpu_precision_beyond_card,
    gpu_precision_without_gpu,
    gpu_tf32_not_default,
    img_image_floats,
    img_image_kind,
    img_image_legacy,
    img_image_unknown,
    img_secure_boot,
    mem_checkpoints_disk,
    mem_gpu_memory,
    mem_loading_ram,
    mem_requires_disk,
    mem_requires_ram,
    mem_requires_shm,
    mem_requires_vram,
    net_mirror_missing,
    net_no_way_to_index,
    net_public_ip,
    pkg_beyond_card,
    pkg_bin_checkpoints_refused,
    pkg_bitsandbytes_binary_missing,
    pkg_built_for_numpy_1,
    pkg_declared_conflict,
    pkg_duplicate_package,
    pkg_flash_attn_compiled,
    pkg_frameworks_beside_torch,
    pkg_index_undefined,
    pkg_index_unused,
    pkg_module_twice,
    pkg_name_lookalike,
    pkg_name_replaced,
    pkg_needs_other_python,
    pkg_nothing_pinned,
    pkg_platform_without_wheel,
    pkg_push_without_token,
    pkg_release_unknown,
    pkg_source_only,
    pkg_torch_companion_mismatch,
    pkg_torch_too_old_for_transformers,
    pkg_tracker_without_key,
    pkg_trainer_needs_accelerate,
    pkg_undeclared_need,
    pyt_python_has_no_torch,
    ref_path_relative,
    sec_default_index_redefined,
    sec_secret_literal,
    sec_secret_unreachable,
    sec_torch_from_foreign_index,
    trn_argument_deprecated,
    trn_argument_not_there,
    trn_argument_repeats_field,
    trn_argument_unknown,
    trn_best_model_needs_evaluation,
    trn_compile_without_triton,
    trn_deepspeed_not_used,
    trn_fp8_needs_backend,
    trn_gpus_without_strategy,
    trn_launcher_starts_one_process,
    trn_method_needs_package,
    trn_optimizer_needs_package,
    trn_optimizer_unknown,
    trn_strategy_needs_package,
    trn_strategy_without_configuration,
    trn_strategy_without_gpus,
    trn_tracker_not_listed,
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
    cud_place_too_old.RULE,
    cud_driver_not_for_card.RULE,
    cud_required_driver_not_there.RULE,
    cud_required_driver_too_low.RULE,
    cud_driver_unknown.RULE,
    cud_default_build_unfit.RULE,
    cud_accelerator_not_on_platform.RULE,
    cud_toolkit_missing.RULE,
    cud_toolkit_unused.RULE,
    cud_toolkit_major_differs.RULE,
    cud_toolkit_compiler_too_new.RULE,
    cud_toolkit_without_card.RULE,
    cud_toolkit_not_released.RULE,
    cud_cudnn_without_card.RULE,
    gpu_name_unknown.RULE,
    gpu_precision_without_gpu.RULE,
    gpu_bf16_on_cpu.RULE,
    gpu_precision_beyond_card.RULE,
    mem_gpu_memory.RULE,
    mem_requires_vram.RULE,
    mem_requires_ram.RULE,
    mem_loading_ram.RULE,
    mem_requires_shm.RULE,
    mem_requires_disk.RULE,
    mem_checkpoints_disk.RULE,
    gcp_machine_type_unknown.RULE,
    gcp_machine_lacks_gpu.RULE,
    gcp_machine_withheld.RULE,
    gcp_gpu_not_on_workbench.RULE,
    gcp_gpu_count.RULE,
    gcp_zone_name.RULE,
    gcp_zone_lacks_gpu.RULE,
    gcp_region_mismatch.RULE,
    gcp_idle_shutdown.RULE,
    gcp_verification_cut_short.RULE,
    gcp_lifetime_missing.RULE,
    gcp_managed_euc.RULE,
    gcp_service_account.RULE,
    gcp_instance_name.RULE,
    gcp_label.RULE,
    gcp_tag.RULE,
    gcp_metadata.RULE,
    gcp_disk.RULE,
    gcp_resource_name.RULE,
    gcp_driver_off.RULE,
    img_image_unknown.RULE,
    img_image_floats.RULE,
    img_image_legacy.RULE,
    img_image_kind.RULE,
    img_secure_boot.RULE,
    net_no_way_to_index.RULE,
    net_public_ip.RULE,
    net_mirror_missing.RULE,
    cst_over_limit.RULE,
    gpu_card_not_in_build.RULE,
    gpu_fp16_without_tensor_cores.RULE,
    gpu_tf32_not_default.RULE,
    gpu_mps_precision.RULE,
    gpu_capability_beyond_card.RULE,
    pkg_trainer_needs_accelerate.RULE,
    pkg_torch_too_old_for_transformers.RULE,
    pkg_release_unknown.RULE,
    pkg_duplicate_package.RULE,
    pkg_name_lookalike.RULE,
    pkg_name_replaced.RULE,
    pkg_index_undefined.RULE,
    pkg_index_unused.RULE,
    pkg_declared_conflict.RULE,
    pkg_undeclared_need.RULE,
    pkg_built_for_numpy_1.RULE,
    pkg_bin_checkpoints_refused.RULE,
    pkg_torch_companion_mismatch.RULE,
    pkg_needs_other_python.RULE,
    pkg_source_only.RULE,
    pkg_flash_attn_compiled.RULE,
    pkg_bitsandbytes_binary_missing.RULE,
    pkg_beyond_card.RULE,
    pkg_frameworks_beside_torch.RULE,
    pkg_platform_without_wheel.RULE,
    pkg_module_twice.RULE,
    pkg_nothing_pinned.RULE,
    pkg_tracker_without_key.RULE,
    pkg_push_without_token.RULE,
    pyt_python_has_no_torch.RULE,
    ref_path_relative.RULE,
    sec_secret_literal.RULE,
    sec_default_index_redefined.RULE,
    sec_torch_from_foreign_index.RULE,
    sec_secret_unreachable.RULE,
    trn_argument_not_there.RULE,
    trn_argument_unknown.RULE,
    trn_argument_deprecated.RULE,
    trn_argument_repeats_field.RULE,
    trn_best_model_needs_evaluation.RULE,
    trn_gpus_without_strategy.RULE,
    trn_strategy_without_gpus.RULE,
    trn_launcher_starts_one_process.RULE,
    trn_strategy_needs_package.RULE,
    trn_strategy_without_configuration.RULE,
    trn_deepspeed_not_used.RULE,
    trn_method_needs_package.RULE,
    trn_optimizer_needs_package.RULE,
    trn_optimizer_unknown.RULE,
    trn_compile_without_triton.RULE,
    trn_fp8_needs_backend.RULE,
    trn_tracker_not_listed.RULE,
    env_rank_set_by_hand.RULE,
    env_devices_hidden.RULE,
    env_rendezvous_set_by_hand.RULE,
)


def judge(case: Case, rules: tuple[Rule, ...] = RULES) -> tuple[Diagnostic, ...]:
    """Return what the rules find, by route and id, each finding once and its text made harmless; a rule that fails is a finding too (BUG000)."""
    found = (finding for rule in rules for finding in _asked(rule, case))
    return tuple(sorted(dict.fromkeys(_harmless(finding) for finding in found), key=_order))


def _asked(rule: Rule, case: Case) -> tuple[Diagnostic, ...]:
    try:
        return tuple(rule.check(case))
    except ProvisionError:  # the facts cannot be read, which is no fault of the rule
        raise
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
    return finding._replace(message=message, why=why, help=way_out, related=related)


def _clean(text: str) -> str:
    text = safe_line(redact(text))
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def _order(finding: Diagnostic) -> tuple[tuple[tuple[bool, int, str], ...], str, str]:
    return _route(finding.where), finding.id, finding.message


def _route(where: Where) -> tuple[tuple[bool, int, str], ...]:
    if isinstance(where, Span):
        return ((True, where.start.offset, ""),)
    return tuple((isinstance(part, int), part if isinstance(part, int) else 0, str(part)) for part in where.route)
