// SPDX-License-Identifier: Apache-2.0
// The list of GPUs, and the identity and properties of each.
#include <cctype>
#include <cstdio>
#include <cstring>

#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

void identity(CUdevice ordinal) {
    CUdevice found = -1;
    CUuuid own{};
    char text[64] = "", little[4] = "";
    ASK(cuDeviceGet, (&found, ordinal), device(found));
    ASK(cuDeviceGet, (nullptr, ordinal));
    ASK(cuDeviceGetUuid, (&own, ordinal), uuid(own));
    ASK(cuDeviceGetUuid_v2, (&own, ordinal), uuid(own));
    ASK(cuDeviceGetUuid_v2, (nullptr, ordinal));
    ASK(cuDeviceGetUuid, (nullptr, ordinal));
    ASK(cuDeviceGetName, (text, sizeof text, ordinal), text);
    ASK(cuDeviceGetName, (little, sizeof little, ordinal), little);
    ASK(cuDeviceGetName, (nullptr, sizeof text, ordinal));
    ASK(cuDeviceGetName, (text, 0, ordinal));
    ASK(cuDeviceGetPCIBusId, (text, sizeof text, ordinal), pci(text));
    const std::string whole = text;
    ASK(cuDeviceGetPCIBusId, (text, 13, ordinal), pci(text));
    ASK(cuDeviceGetPCIBusId, (little, sizeof little, ordinal), number(static_cast<long long>(std::strlen(little))));
    ASK(cuDeviceGetPCIBusId, (nullptr, sizeof text, ordinal));
    ASK(cuDeviceGetPCIBusId, (text, 0, ordinal));
    ASK(cuDeviceGetPCIBusId, (text, -1, ordinal));
    ASK(cuDeviceGetByPCIBusId, (&found, whole.c_str()), device(found));
    std::string lower = whole;
    for (char& letter : lower)
        letter = static_cast<char>(std::tolower(letter));
    ASK(cuDeviceGetByPCIBusId, (&found, lower.c_str()), device(found));
    ASK(cuDeviceGetByPCIBusId, (&found, whole.substr(0, whole.find('.')).c_str()), device(found));
    ASK(cuDeviceGetByPCIBusId, (nullptr, whole.c_str()));
    ASK(cuDeviceGetByPCIBusId, (&found, (whole + "x").c_str()), device(found));
    unsigned mask = 0;
    char luid[8] = "";
    ASK(cuDeviceGetLuid, (luid, &mask, ordinal), number(mask));
}

void properties(CUdevice ordinal) {
    size_t bytes = 0;
    unsigned old_bytes = 0;
    int value = 0, minor = 0;
    ASK(cuDeviceTotalMem_v2, (&bytes, ordinal), number(static_cast<long long>(bytes)));
    ASK(cuDeviceTotalMem_v2, (nullptr, ordinal));
    ASK(cuDeviceTotalMem, (&old_bytes, ordinal), number(old_bytes));
    ASK(cuDeviceComputeCapability, (&value, &minor, ordinal), number(value), number(minor));
    CUdevprop old{};
    ASK(cuDeviceGetProperties, (&old, ordinal), number(old.maxThreadsPerBlock), number(old.clockRate));
    ASK(cuDeviceGetProperties, (nullptr, ordinal));
    for (int attribute = 0; attribute <= CU_DEVICE_ATTRIBUTE_MAX; attribute++) {
        const auto which = static_cast<CUdevice_attribute>(attribute);
        const Scope scope("attribute " + std::to_string(attribute));
        const bool address = which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID || which == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID ||
                             which == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID;
        ASK(cuDeviceGetAttribute, (&value, which, ordinal), address ? "its own" : number(value));
    }
    int domain = 0, bus = 0, slot = 0;
    char together[32], text[32] = "";
    cuDeviceGetAttribute(&domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, ordinal);
    cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, ordinal);
    cuDeviceGetAttribute(&slot, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, ordinal);
    std::snprintf(together, sizeof together, "%04X:%02X:%02X.0", domain, bus, slot);
    ASK(cuDeviceGetPCIBusId, (text, sizeof text, ordinal), pci(text), pci(together));
    ASK(cuDeviceGetAttribute, (nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, ordinal));
    for (const auto type : {CU_EXEC_AFFINITY_TYPE_SM_COUNT, CU_EXEC_AFFINITY_TYPE_MAX})
        ASK(cuDeviceGetExecAffinitySupport, (&value, type, ordinal), number(value));
    ASK(cuDeviceGetTexture1DLinearMaxWidth, (&bytes, CU_AD_FORMAT_FLOAT, 1, ordinal),
        number(static_cast<long long>(bytes)));
    unsigned capability = 0;
    const CUatomicOperation operation = CU_ATOMIC_OPERATION_INTEGER_ADD;
    ASK(cuDeviceGetHostAtomicCapabilities, (&capability, &operation, 1, ordinal), number(capability));
    ASK(cuDeviceGetNvSciSyncAttributes, (nullptr, ordinal, 0));
    CUasyncCallbackHandle callback = nullptr;
    ASK(cuDeviceRegisterAsyncNotification,
        (
            ordinal, [](CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}, nullptr, &callback),
        "registered");
    ASK(cuDeviceUnregisterAsyncNotification, (ordinal, callback));
}

void graph_memory_of(CUdevice ordinal) {
    cuuint64_t bytes = 0;
    for (const auto which : {CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
                             CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH}) {
        ASK(cuDeviceGetGraphMemAttribute, (ordinal, which, &bytes), number(static_cast<long long>(bytes)));
        bytes = 0;
        ASK(cuDeviceSetGraphMemAttribute, (ordinal, which, &bytes));
    }
    ASK(cuDeviceGetGraphMemAttribute, (ordinal, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, nullptr));
    ASK(cuDeviceGraphMemTrim, (ordinal));
}

}  // namespace

void devices() {
    int count = 0, value = 0;
    CUdevice found = -1;
    // Before the driver has started.
    ASK(cuDeviceGetCount, (&count), number(count));
    ASK(cuDeviceGet, (&found, 0), device(found));
    ASK(cuCtxGetDevice, (&found), device(found));
    ASK(cuInit, (1));
    ASK(cuInit, (0));
    start();
    ASK(cuDeviceGetCount, (&count), number(count));
    ASK(cuDeviceGetCount, (nullptr));
    // One that there is not, and one far from any, too.
    for (const CUdevice ordinal : {0, 1, 2, -1, 1000}) {
        const Scope scope(device(ordinal));
        identity(ordinal);
        properties(ordinal);
        graph_memory_of(ordinal);
    }
    for (const char* wrong : {"", "x", "ffff:ff:1f.0", "1:2", "0000:zz:00.0"})
        ASK(cuDeviceGetByPCIBusId, (&found, wrong), device(found));
    ASK(cuDeviceGetByPCIBusId, (&found, nullptr));
    for (const int attribute : {-1, 10000})
        ASK(cuDeviceGetAttribute, (&value, static_cast<CUdevice_attribute>(attribute), 1), number(value));
}

}  // namespace conformance
