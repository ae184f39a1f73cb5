#pragma once
// The part of the NVIDIA management library's ABI that this project speaks. CUDA toolkits lack nvml.h, so these are
// declarations of our own, written from NVIDIA's "NVML API Reference Guide"; names of types, constants and members
// are those of the guide without the prefix, so that each can be looked up there. Sizes are bytes, clocks MHz, power
// milliwatts, temperatures °C, utilization percent.
//
// cuslice::nvml::functions::nvmlX is the function type of nvmlX. A definition is checked against it by declaring
//     extern "C" functions::nvmlX nvmlX;
// before it. Nothing is implemented here.

namespace cuslice::nvml {

// ---- return codes ("nvmlReturn_enum") -------------------------------------------------------------------------------
enum Return : int {
    SUCCESS = 0,
    ERROR_UNINITIALIZED = 1,
    ERROR_INVALID_ARGUMENT = 2,
    ERROR_NOT_SUPPORTED = 3,
    ERROR_NO_PERMISSION = 4,
    ERROR_ALREADY_INITIALIZED = 5,
    ERROR_NOT_FOUND = 6,
    ERROR_INSUFFICIENT_SIZE = 7,
    ERROR_INSUFFICIENT_POWER = 8,
    ERROR_DRIVER_NOT_LOADED = 9,
    ERROR_TIMEOUT = 10,
    ERROR_IRQ_ISSUE = 11,
    ERROR_LIBRARY_NOT_FOUND = 12,
    ERROR_FUNCTION_NOT_FOUND = 13,
    ERROR_CORRUPTED_INFOROM = 14,
    ERROR_GPU_IS_LOST = 15,
    ERROR_RESET_REQUIRED = 16,
    ERROR_OPERATING_SYSTEM = 17,
    ERROR_LIB_RM_VERSION_MISMATCH = 18,
    ERROR_IN_USE = 19,
    ERROR_MEMORY = 20,
    ERROR_NO_DATA = 21,
    ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
    ERROR_INSUFFICIENT_RESOURCES = 23,
    ERROR_FREQ_NOT_SUPPORTED = 24,
    ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    ERROR_DEPRECATED = 26,
    ERROR_NOT_READY = 27,
    ERROR_GPU_NOT_FOUND = 28,
    ERROR_INVALID_STATE = 29,
    ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
    ERROR_UNKNOWN = 999,
};

// ---- handles and constants ------------------------------------------------------------------------------------------
using Device = struct DeviceHandle*;      // nvmlDevice_t
using Unit = struct UnitHandle*;          // nvmlUnit_t
using EventSet = struct EventSetHandle*;  // nvmlEventSet_t

enum Enable : int { FEATURE_DISABLED = 0, FEATURE_ENABLED = 1 };
enum InitFlag : unsigned { INIT_FLAG_NO_GPUS = 1, INIT_FLAG_NO_ATTACH = 2, INIT_FLAG_FORCE_INIT = 4 };
enum Brand : int {
    BRAND_UNKNOWN = 0,
    BRAND_QUADRO = 1,
    BRAND_TESLA = 2,
    BRAND_GEFORCE = 5,
    BRAND_TITAN = 6,
    BRAND_QUADRO_RTX = 12,
    BRAND_NVIDIA_RTX = 13,
    BRAND_NVIDIA = 14,
    BRAND_GEFORCE_RTX = 15,
};
enum TemperatureSensor : int { TEMPERATURE_GPU = 0 };
enum TemperatureThreshold : int {
    TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
    TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
    TEMPERATURE_THRESHOLD_MEM_MAX = 2,
    TEMPERATURE_THRESHOLD_GPU_MAX = 3,
};
enum ClockType : int { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEM = 2, CLOCK_VIDEO = 3, CLOCK_COUNT = 4 };
enum ClockId : int {
    CLOCK_ID_CURRENT = 0,
    CLOCK_ID_APP_CLOCK_TARGET = 1,
    CLOCK_ID_APP_CLOCK_DEFAULT = 2,
    CLOCK_ID_CUSTOMER_BOOST_MAX = 3,
};
enum Pstate : int { PSTATE_0 = 0, PSTATE_8 = 8, PSTATE_UNKNOWN = 32 };
enum ComputeMode : int { COMPUTEMODE_DEFAULT = 0, COMPUTEMODE_PROHIBITED = 2, COMPUTEMODE_EXCLUSIVE_PROCESS = 3 };
enum MemoryErrorType : int { MEMORY_ERROR_TYPE_CORRECTED = 0, MEMORY_ERROR_TYPE_UNCORRECTED = 1 };
enum EccCounterType : int { VOLATILE_ECC = 0, AGGREGATE_ECC = 1 };
enum GpuTopologyLevel : int {
    TOPOLOGY_INTERNAL = 0,
    TOPOLOGY_SINGLE = 10,
    TOPOLOGY_MULTIPLE = 20,
    TOPOLOGY_HOSTBRIDGE = 30,
    TOPOLOGY_NODE = 40,
    TOPOLOGY_SYSTEM = 50,
};
enum GpuP2PCapsIndex : int {
    P2P_CAPS_INDEX_READ = 0,
    P2P_CAPS_INDEX_WRITE = 1,
    P2P_CAPS_INDEX_NVLINK = 2,
    P2P_CAPS_INDEX_ATOMICS = 3,
    P2P_CAPS_INDEX_PCI = 4,
};
enum GpuP2PStatus : int { P2P_STATUS_OK = 0, P2P_STATUS_GPU_NOT_SUPPORTED = 2, P2P_STATUS_NOT_SUPPORTED = 5 };
enum PcieUtilCounter : int { PCIE_UTIL_TX_BYTES = 0, PCIE_UTIL_RX_BYTES = 1 };
enum RestrictedApi : int { RESTRICTED_API_SET_APPLICATION_CLOCKS = 0, RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS = 1 };
enum UuidType : unsigned { UUID_TYPE_NONE = 0, UUID_TYPE_ASCII = 1, UUID_TYPE_BINARY = 2 };
enum ProcessMode : unsigned { PROCESS_MODE_COMPUTE = 0, PROCESS_MODE_GRAPHICS = 1, PROCESS_MODE_MPS = 2 };

constexpr unsigned DEVICE_NAME_BUFFER_SIZE = 64;
constexpr unsigned DEVICE_NAME_V2_BUFFER_SIZE = 96;
constexpr unsigned DEVICE_UUID_BUFFER_SIZE = 80;
constexpr unsigned DEVICE_UUID_V2_BUFFER_SIZE = 96;
constexpr unsigned DEVICE_SERIAL_BUFFER_SIZE = 30;
constexpr unsigned DEVICE_PART_NUMBER_BUFFER_SIZE = 80;
constexpr unsigned DEVICE_VBIOS_VERSION_BUFFER_SIZE = 32;
constexpr unsigned DEVICE_PCI_BUS_ID_BUFFER_SIZE = 32;
constexpr unsigned DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE = 16;
constexpr unsigned SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80;
constexpr unsigned SYSTEM_NVML_VERSION_BUFFER_SIZE = 80;

/// "Not available" in a process's usedGpuMemory.
constexpr unsigned long long VALUE_NOT_AVAILABLE = ~0ULL;
/// gpuInstanceId and computeInstanceId of a process on a GPU without MIG.
constexpr unsigned NO_INSTANCE = ~0U;
constexpr unsigned ARCH_MAXWELL = 3, ARCH_PASCAL = 4, ARCH_VOLTA = 5, ARCH_TURING = 6, ARCH_AMPERE = 7, ARCH_ADA = 8,
                   ARCH_HOPPER = 9, ARCH_BLACKWELL = 10, ARCH_UNKNOWN = ~0U;

// ---- structures -----------------------------------------------------------------------------------------------------
/// A structure that carries its version says so in its first member: the size and the version's number.
template <typename T>
constexpr unsigned struct_version(unsigned number) {
    return static_cast<unsigned>(sizeof(T)) | number << 24;
}

struct PciInfo {                                         // nvmlPciInfo_t, of nvmlDeviceGetPciInfo_v3
    char busIdLegacy[DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];  // 0000:81:00.0
    unsigned domain, bus, device;
    unsigned pciDeviceId;                       // device << 16 | vendor
    unsigned pciSubSystemId;                    // the same of the board; absent in version 1
    char busId[DEVICE_PCI_BUS_ID_BUFFER_SIZE];  // 00000000:81:00.0
};

struct PciInfoV2 {  // of nvmlDeviceGetPciInfo and _v2
    char busId[DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned domain, bus, device;
    unsigned pciDeviceId;
    unsigned pciSubSystemId;
    unsigned reserved[4];
};

struct PciInfoExt {  // nvmlPciInfoExt_v1_t
    unsigned version;
    unsigned domain, bus, device;
    unsigned pciDeviceId, pciSubSystemId;
    unsigned baseClass, subClass;
    char busId[DEVICE_PCI_BUS_ID_BUFFER_SIZE];
};

struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
};

struct MemoryV2 {  // nvmlMemory_v2_t; the caller fills in version
    unsigned version;
    unsigned long long total;
    unsigned long long reserved;  // kept by the driver; not part of used here, part of it in Memory
    unsigned long long free, used;
};

struct Bar1Memory {  // nvmlBAR1Memory_t
    unsigned long long bar1Total, bar1Free, bar1Used;
};

struct Utilization {  // nvmlUtilization_t
    unsigned gpu, memory;
};

struct FbcStats {  // nvmlFBCStats_t
    unsigned sessions, fps, latency;
};

struct ProcessInfoV1 {  // nvmlProcessInfo_v1_t
    unsigned pid;
    unsigned long long usedGpuMemory;
};

struct ProcessInfo {  // nvmlProcessInfo_v2_t and the identical nvmlProcessInfo_t of the _v3 functions
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
};

struct ProcessDetail {  // nvmlProcessDetail_v1_t
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
};

struct ProcessDetailList {  // nvmlProcessDetailList_v1_t
    unsigned version;
    ProcessMode mode;
    unsigned numProcArrayEntries;
    ProcessDetail* procArray;
};

struct ProcessUtilizationSample {  // nvmlProcessUtilizationSample_t
    unsigned pid;
    unsigned long long timeStamp;
    unsigned smUtil, memUtil, encUtil, decUtil;
};

struct Uuid {  // nvmlUUID_v1_t, of nvmlDeviceGetHandleByUUIDV
    unsigned version;
    UuidType type;
    union {
        char str[41];
        unsigned char bytes[16];
    } value;
};

struct DeviceAttributes {  // nvmlDeviceAttributes_t
    unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount,
        sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
};

struct Temperature {  // nvmlTemperature_v1_t
    unsigned version;
    TemperatureSensor sensorType;
    int temperature;
};

struct EventDataV1 {  // nvmlEventData_t of nvmlEventSetWait
    Device device;
    unsigned long long eventType, eventData;
};

struct EventData {  // nvmlEventData_t of nvmlEventSetWait_v2
    Device device;
    unsigned long long eventType, eventData;
    unsigned gpuInstanceId, computeInstanceId;
};

static_assert(sizeof(PciInfo) == 68 && sizeof(PciInfoV2) == 52 && sizeof(PciInfoExt) == 64);
static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && struct_version<MemoryV2>(2) == 0x02000028);
static_assert(sizeof(ProcessInfoV1) == 16 && sizeof(ProcessInfo) == 24 && sizeof(ProcessDetail) == 32);
static_assert(sizeof(EventDataV1) == 24 && sizeof(EventData) == 32);
static_assert(struct_version<Uuid>(1) == 0x1000034 && struct_version<ProcessDetailList>(1) == 0x1000018);

// ---- functions ------------------------------------------------------------------------------------------------------
namespace functions {

using ForDevice = Return(Device);
using GetUnsigned = Return(Device, unsigned*);
using GetInt = Return(Device, int*);
using GetBytes = Return(Device, unsigned long long*);
using GetText = Return(Device, char*, unsigned length);
using GetEnable = Return(Device, Enable*);
using GetProcessesV1 = Return(Device, unsigned* count, ProcessInfoV1*);
using GetProcesses = Return(Device, unsigned* count, ProcessInfo*);
using GetUtilization = Return(Device, unsigned* utilization, unsigned* sampling_us);

// The library and the machine.
using nvmlInit = Return();
using nvmlInit_v2 = Return();
using nvmlInitWithFlags = Return(unsigned);
using nvmlShutdown = Return();
using nvmlErrorString = const char*(Return);
using nvmlInternalGetExportTable = Return(const void**, const void*);
using nvmlSystemGetDriverVersion = Return(char*, unsigned);
using nvmlSystemGetNVMLVersion = Return(char*, unsigned);
using nvmlSystemGetCudaDriverVersion = Return(int*);
using nvmlSystemGetCudaDriverVersion_v2 = Return(int*);
using nvmlSystemGetProcessName = Return(unsigned pid, char*, unsigned length);
using nvmlUnitGetCount = Return(unsigned*);

// Which GPU.
using nvmlDeviceGetCount = Return(unsigned*);
using nvmlDeviceGetCount_v2 = Return(unsigned*);
using nvmlDeviceGetHandleByIndex = Return(unsigned, Device*);
using nvmlDeviceGetHandleByIndex_v2 = Return(unsigned, Device*);
using nvmlDeviceGetHandleByUUID = Return(const char*, Device*);
using nvmlDeviceGetHandleByUUIDV = Return(const Uuid*, Device*);
using nvmlDeviceGetHandleByPciBusId = Return(const char*, Device*);
using nvmlDeviceGetHandleByPciBusId_v2 = Return(const char*, Device*);
using nvmlDeviceGetHandleBySerial = Return(const char*, Device*);

// What it is.
using nvmlDeviceGetIndex = GetUnsigned;
using nvmlDeviceGetMinorNumber = GetUnsigned;
using nvmlDeviceGetName = GetText;
using nvmlDeviceGetUUID = GetText;
using nvmlDeviceGetSerial = GetText;
using nvmlDeviceGetVbiosVersion = GetText;
using nvmlDeviceGetBoardPartNumber = GetText;
using nvmlDeviceGetBoardId = GetUnsigned;
using nvmlDeviceGetMultiGpuBoard = GetUnsigned;
using nvmlDeviceGetBrand = Return(Device, Brand*);
using nvmlDeviceGetArchitecture = GetUnsigned;
using nvmlDeviceGetCudaComputeCapability = Return(Device, int* major, int* minor);
using nvmlDeviceGetNumGpuCores = GetUnsigned;
using nvmlDeviceGetAttributes = Return(Device, DeviceAttributes*);
using nvmlDeviceGetAttributes_v2 = Return(Device, DeviceAttributes*);
using nvmlDeviceGetPciInfo = Return(Device, PciInfoV2*);
using nvmlDeviceGetPciInfo_v2 = Return(Device, PciInfoV2*);
using nvmlDeviceGetPciInfo_v3 = Return(Device, PciInfo*);
using nvmlDeviceGetPciInfoExt = Return(Device, PciInfoExt*);
using nvmlDeviceGetMaxPcieLinkGeneration = GetUnsigned;
using nvmlDeviceGetMaxPcieLinkWidth = GetUnsigned;
using nvmlDeviceGetCurrPcieLinkGeneration = GetUnsigned;
using nvmlDeviceGetCurrPcieLinkWidth = GetUnsigned;
using nvmlDeviceGetPcieThroughput = Return(Device, PcieUtilCounter, unsigned* kib_per_second);
using nvmlDeviceGetMemoryBusWidth = GetUnsigned;
using nvmlDeviceGetTopologyCommonAncestor = Return(Device, Device, GpuTopologyLevel*);
using nvmlDeviceGetP2PStatus = Return(Device, Device, GpuP2PCapsIndex, GpuP2PStatus*);
using nvmlDeviceOnSameBoard = Return(Device, Device, int*);

// Its memory and who holds it. The process lists: *count is the array's length, then how many there are; too short
// is ERROR_INSUFFICIENT_SIZE, unless *count was 0 and there is none.
using nvmlDeviceGetMemoryInfo = Return(Device, Memory*);
using nvmlDeviceGetMemoryInfo_v2 = Return(Device, MemoryV2*);
using nvmlDeviceGetBAR1MemoryInfo = Return(Device, Bar1Memory*);
using nvmlDeviceGetComputeRunningProcesses = GetProcessesV1;
using nvmlDeviceGetComputeRunningProcesses_v2 = GetProcesses;
using nvmlDeviceGetComputeRunningProcesses_v3 = GetProcesses;
using nvmlDeviceGetGraphicsRunningProcesses = GetProcessesV1;
using nvmlDeviceGetGraphicsRunningProcesses_v2 = GetProcesses;
using nvmlDeviceGetGraphicsRunningProcesses_v3 = GetProcesses;
using nvmlDeviceGetMPSComputeRunningProcesses = GetProcessesV1;
using nvmlDeviceGetMPSComputeRunningProcesses_v2 = GetProcesses;
using nvmlDeviceGetMPSComputeRunningProcesses_v3 = GetProcesses;
using nvmlDeviceGetRunningProcessDetailList = Return(Device, ProcessDetailList*);
using nvmlDeviceGetProcessUtilization = Return(Device, ProcessUtilizationSample*, unsigned* count,
                                               unsigned long long last_seen_us);

// What it does.
using nvmlDeviceGetUtilizationRates = Return(Device, Utilization*);
using nvmlDeviceGetEncoderUtilization = GetUtilization;
using nvmlDeviceGetDecoderUtilization = GetUtilization;
using nvmlDeviceGetEncoderCapacity = Return(Device, unsigned type, unsigned*);
using nvmlDeviceGetEncoderStats = Return(Device, unsigned* count, unsigned* fps, unsigned* latency);
using nvmlDeviceGetEncoderSessions = Return(Device, unsigned* count, void* sessions);
using nvmlDeviceGetFBCStats = Return(Device, FbcStats*);
using nvmlDeviceGetFBCSessions = Return(Device, unsigned* count, void* sessions);
using nvmlDeviceGetTemperature = Return(Device, TemperatureSensor, unsigned*);
using nvmlDeviceGetTemperatureV = Return(Device, Temperature*);
using nvmlDeviceGetTemperatureThreshold = Return(Device, TemperatureThreshold, unsigned*);
using nvmlDeviceGetFanSpeed = GetUnsigned;
using nvmlDeviceGetFanSpeed_v2 = Return(Device, unsigned fan, unsigned* percent);
using nvmlDeviceGetNumFans = GetUnsigned;
using nvmlDeviceGetPowerUsage = GetUnsigned;
using nvmlDeviceGetPowerManagementMode = GetEnable;
using nvmlDeviceGetPowerManagementLimit = GetUnsigned;
using nvmlDeviceGetPowerManagementDefaultLimit = GetUnsigned;
using nvmlDeviceGetPowerManagementLimitConstraints = Return(Device, unsigned* least, unsigned* most);
using nvmlDeviceGetEnforcedPowerLimit = GetUnsigned;
using nvmlDeviceGetPowerState = Return(Device, Pstate*);
using nvmlDeviceGetPerformanceState = Return(Device, Pstate*);
using nvmlDeviceGetClockInfo = Return(Device, ClockType, unsigned*);
using nvmlDeviceGetMaxClockInfo = Return(Device, ClockType, unsigned*);
using nvmlDeviceGetClock = Return(Device, ClockType, ClockId, unsigned*);
using nvmlDeviceGetApplicationsClock = Return(Device, ClockType, unsigned*);
using nvmlDeviceGetCurrentClocksThrottleReasons = GetBytes;
using nvmlDeviceGetSupportedClocksThrottleReasons = GetBytes;

// How it is set up.
using nvmlDeviceGetPersistenceMode = GetEnable;
using nvmlDeviceGetCpuAffinity = Return(Device, unsigned words, unsigned long* mask);
using nvmlDeviceSetCpuAffinity = ForDevice;
using nvmlDeviceClearCpuAffinity = ForDevice;
using nvmlDeviceGetDisplayMode = GetEnable;
using nvmlDeviceGetDisplayActive = GetEnable;
using nvmlDeviceGetAccountingMode = GetEnable;
using nvmlDeviceGetVirtualizationMode = GetUnsigned;
using nvmlDeviceGetComputeMode = Return(Device, ComputeMode*);
using nvmlDeviceGetEccMode = Return(Device, Enable* current, Enable* pending);
using nvmlDeviceGetTotalEccErrors = Return(Device, MemoryErrorType, EccCounterType, unsigned long long*);
using nvmlDeviceGetMigMode = Return(Device, unsigned* current, unsigned* pending);
using nvmlDeviceGetMaxMigDeviceCount = GetUnsigned;
using nvmlDeviceGetMigDeviceHandleByIndex = Return(Device, unsigned, Device*);
using nvmlDeviceGetDeviceHandleFromMigDeviceHandle = Return(Device, Device*);
using nvmlDeviceIsMigDeviceHandle = GetUnsigned;
using nvmlDeviceGetGpuInstanceId = GetUnsigned;
using nvmlDeviceGetComputeInstanceId = GetUnsigned;

// What happens to it.
using nvmlEventSetWait = Return(EventSet, EventDataV1*, unsigned timeout_ms);
using nvmlEventSetWait_v2 = Return(EventSet, EventData*, unsigned timeout_ms);

}  // namespace functions
}  // namespace cuslice::nvml
