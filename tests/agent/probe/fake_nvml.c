/* A libnvidia-ml.so.1 that answers what FAKE_NVML says, as "key=value;key=value": for tests of what the probe makes of it.
   "key@1=value" is said of the second card alone; FAKE_NVML_NAME may name one card after the other, as "NVIDIA L4|Tesla T4". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long long told(const char *key, long long otherwise) {
	const char *text = getenv("FAKE_NVML"), *found;
	char wanted[64] = ";";
	if (!text) return otherwise;
	strncat(wanted, key, 60);
	strcat(wanted, "=");
	if (!strncmp(text, wanted + 1, strlen(wanted) - 1)) return atoll(text + strlen(wanted) - 1);
	found = strstr(text, wanted);
	return found ? atoll(found + strlen(wanted)) : otherwise;
}

static long long own(void *card, const char *key, long long otherwise) {
	char wanted[64];
	snprintf(wanted, sizeof wanted, "%s@%ld", key, (long)card - 1);
	return told(wanted, told(key, otherwise));
}

static int text(const char *name, const char *otherwise, char *out, unsigned size) {
	const char *value = getenv(name);
	strncpy(out, value ? value : otherwise, size - 1);
	out[size - 1] = 0;
	return 0;
}

static int number(const char *key, unsigned otherwise, unsigned *out) {
	long long value = told(key, otherwise);
	if (value < 0) return (int)-value; /* a return code of NVML, such as 3: not supported */
	*out = (unsigned)value;
	return 0;
}

static int number_of(void *card, const char *key, long long otherwise, unsigned *out) {
	long long value = own(card, key, otherwise);
	if (value < 0) return (int)-value;
	*out = (unsigned)value;
	return 0;
}

int nvmlInit_v2(void) { return (int)told("init", 0); }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *out, unsigned size) { return text("FAKE_NVML_DRIVER", "580.82.07", out, size); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { return number("cuda", 13000, (unsigned *)out); }
#ifndef NO_COUNT
int nvmlDeviceGetCount_v2(unsigned *out) { return number("count", 1, out); }
#endif
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
	*out = (void *)(long)(index + 1);
	return (int)told("handle", 0);
}
int nvmlDeviceGetName(void *card, char *out, unsigned size) {
	const char *names = getenv("FAKE_NVML_NAME"), *next;
	long before = (long)card - 1;
	if (!names) names = "NVIDIA L4";
	while (before-- > 0 && (next = strchr(names, '|'))) names = next + 1;
	snprintf(out, size, "%.*s", (int)strcspn(names, "|"), names);
	return 0;
}
int nvmlDeviceGetUUID(void *card, char *out, unsigned size) {
	if (told("uuid", 1) < 0) return 3;
	snprintf(out, size, "GPU-%ld%ld%ld0-fake", (long)card, (long)card, (long)card); /* GPU-1110-fake, GPU-2220-fake */
	return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *card, int *major, int *minor) {
	long long value = own(card, "capability", 89);
	if (value < 0) return (int)-value;
	*major = (int)(value / 10);
	*minor = (int)(value % 10);
	return 0;
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
int nvmlDeviceGetPciInfo_v3(void *card, struct pci *out) {
	memset(out, 0, sizeof *out);
	out->bus = (unsigned)own(card, "bus", 0x1a + (long)card);
	return number_of(card, "pci", 0x27b810de, &out->id); /* the device stands in the upper half, the vendor in the lower */
}
struct process { unsigned pid; unsigned long long used; unsigned instance, compute_instance; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, struct process *out) {
	long long pid = told("holder", 0);
	if (*count) out[0].pid = (unsigned)pid;
	*count = pid ? 1 : 0;
	return 0;
}
struct field { unsigned id, scope; long long stamp, latency; int kind, code; unsigned long long value; };
int nvmlDeviceGetFieldValues(void *card, int count, struct field *out) {
	long long value = told("recovery", -3);
	if (count != 1 || out->id != 230) return 2;
	out->code = value < 0 ? (int)-value : 0;
	out->value = 0xabcdef0000000000ULL | (unsigned)(value < 0 ? 0 : value); /* only the lower half of the union is written */
	return 0;
}
struct fabric { unsigned char cluster[16]; int status; unsigned clique; unsigned char state; };
int nvmlDeviceGetGpuFabricInfo(void *card, struct fabric *out) {
	memset(out, 0, sizeof *out);
	out->status = (int)told("fabric_status", 0);
	out->state = (unsigned char)told("fabric", 0);
	return 0;
}
int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *out) {
	long long total = own(card, "total_mib", 23034);
	if (total < 0) return (int)-total; /* 4: no permission */
	out[0] = (unsigned long long)total << 20;
	out[2] = (unsigned long long)own(card, "used_mib", 400) << 20;
	out[1] = out[0] - out[2];
	return 0;
}
int nvmlDeviceGetEccMode(void *card, unsigned *now, unsigned *pending) {
	*pending = 0;
	return number_of(card, "ecc", 1, now);
}
int nvmlDeviceGetTotalEccErrors(void *card, int kind, int counter, unsigned long long *out) {
	long long count = own(card, "uncorrected", 0);
	if (count < 0) return (int)-count;
	*out = kind == 1 && counter == 0 ? (unsigned long long)count : 77;
	return 0;
}
int nvmlDeviceGetRemappedRows(void *card, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
	*corrected = *uncorrected = 0;
	*failed = (unsigned)told("remap_failed", 0);
	return number("remap_pending", 0, pending);
}
int nvmlDeviceGetRetiredPagesPendingStatus(void *card, unsigned *out) { return number_of(card, "retired_pending", -3, out); }
int nvmlDeviceGetMigMode(void *card, unsigned *now, unsigned *pending) {
	*pending = 0;
	return number("mig", 0, now);
}
int nvmlDeviceGetComputeMode(void *card, unsigned *out) { return number("compute_mode", 0, out); }
int nvmlDeviceGetPersistenceMode(void *card, unsigned *out) { return number("persistence", 1, out); }
int nvmlDeviceGetCurrPcieLinkWidth(void *card, unsigned *out) { return number("lanes", 16, out); }
int nvmlDeviceGetMaxPcieLinkWidth(void *card, unsigned *out) { return number("lanes_most", 16, out); }
int nvmlDeviceGetMaxPcieLinkGeneration(void *card, unsigned *out) { return number("pcie_most", 4, out); }
int nvmlDeviceGetGpuMaxPcieLinkGeneration(void *card, unsigned *out) { return number("pcie_of_card", 4, out); }
int nvmlDeviceGetPowerManagementLimit(void *card, unsigned *out) { return number("power_limit_mw", 72000, out); }
int nvmlDeviceGetPowerManagementDefaultLimit(void *card, unsigned *out) { return number("power_default_mw", 72000, out); }
#ifdef OLD_NAMES
int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *out) {
#else
int nvmlDeviceGetCurrentClocksEventReasons(void *card, unsigned long long *out) {
#endif
	*out = (unsigned long long)own(card, "reasons", 1);
	return 0;
}
int nvmlDeviceGetUtilizationRates(void *card, unsigned *out) {
	out[1] = 0;
	return number("busy", 80, out);
}
int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *out) { return number("temperature", 60, out); }
int nvmlDeviceGetPowerUsage(void *card, unsigned *out) { return number("power_mw", 55000, out); }
