// SPDX-License-Identifier: Apache-2.0
// Finding virtual GPUs in NVML, and what tells them apart.
#include <algorithm>
#include <cctype>

#include "tests/virtual_gpu/split/nvml_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

const nvmlDevice_t kUntouched = real_handle(3);

nvmlReturn_t answer(nvmlDevice_t gpu) {
    if (NvmlScene::failing)
        return NVML_ERROR_UNKNOWN;
    return real_gpu(gpu) < 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t by_serial(const char* serial, nvmlDevice_t* handle) {
    if (std::strcmp(serial, "broken") == 0) {
        *handle = real_handle(0);  // a library may write it nevertheless
        return NVML_ERROR_UNKNOWN;
    }
    const int gpu = serial[0] - '0';
    *handle = real_handle(gpu);
    return gpu < 4 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t index_of(nvmlDevice_t gpu, unsigned* index) {
    if (answer(gpu) == NVML_SUCCESS)
        *index = static_cast<unsigned>(10 + real_gpu(gpu));
    return answer(gpu);
}

nvmlReturn_t uuid_of(nvmlDevice_t gpu, char* text, unsigned size) {
    if (answer(gpu) == NVML_SUCCESS)
        std::snprintf(text, size, "physical %d", real_gpu(gpu));
    return answer(gpu);
}

// As far as both structures are the same.
nvmlReturn_t old_pci_of(nvmlDevice_t gpu, nvmlPciInfo_t* info) {
    if (answer(gpu) != NVML_SUCCESS)
        return answer(gpu);
    std::strcpy(info->busIdLegacy, "legacy");
    info->domain = 1, info->bus = 2, info->device = 3, info->pciDeviceId = 4;
    return NVML_SUCCESS;
}

nvmlReturn_t pci_of(nvmlDevice_t gpu, nvmlPciInfo_t* info) {
    if (answer(gpu) == NVML_SUCCESS)
        std::strcpy(info->busId, "long");
    return old_pci_of(gpu, info);
}

nvmlReturn_t pci_ext_of(nvmlDevice_t gpu, nvmlPciInfoExt_v1_t* info) {
    if (answer(gpu) != NVML_SUCCESS)
        return answer(gpu);
    std::strcpy(info->busId, "long");
    info->domain = 1, info->bus = 2, info->device = 3, info->pciDeviceId = 4;
    return NVML_SUCCESS;
}

nvmlReturn_t not_to_be_asked() { return NVML_ERROR_UNKNOWN; }

struct Scene : NvmlScene {
    explicit Scene(bool opened = true) {
        using enum NvmlFunction;
        for (const NvmlFunction own :
             {nvmlDeviceGetCount, nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2,
              nvmlDeviceGetHandleByUUID, nvmlDeviceGetHandleByUUIDV, nvmlDeviceGetHandleByPciBusId,
              nvmlDeviceGetHandleByPciBusId_v2})
            put(own, not_to_be_asked);
        put(nvmlDeviceGetHandleBySerial, by_serial);
        put(nvmlDeviceGetIndex, index_of);
        put(nvmlDeviceGetUUID, uuid_of);
        put(nvmlDeviceGetPciInfo, old_pci_of);
        put(nvmlDeviceGetPciInfo_v2, old_pci_of);
        put(nvmlDeviceGetPciInfo_v3, pci_of);
        put(nvmlDeviceGetPciInfoExt, pci_ext_of);
        install();
        if (opened)
            open();
    }
};

/// Index of the virtual GPU that was found; if none was, the negated error, and the place for the handle is untouched.
template <typename Call>
int found(Call call) {
    nvmlDevice_t handle = kUntouched;
    const nvmlReturn_t result = call(&handle);
    if (result == NVML_SUCCESS) {
        const VirtualNvmlDevice* const device = virtual_nvml().find(handle);
        REQUIRE(device);
        return static_cast<int>(device->index);
    }
    CHECK(handle == kUntouched);
    return -static_cast<int>(result);
}
int by_uuid(const std::string& uuid) {
    return found([&](nvmlDevice_t* into) { return CUSLICE_REAL_NVML(nvmlDeviceGetHandleByUUID)(uuid.c_str(), into); });
}
int by_pci(const std::string& pci) {
    const int old =
        found([&](nvmlDevice_t* into) { return CUSLICE_REAL_NVML(nvmlDeviceGetHandleByPciBusId)(pci.c_str(), into); });
    const int now = found(
        [&](nvmlDevice_t* into) { return CUSLICE_REAL_NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.c_str(), into); });
    CHECK(old == now);
    return now;
}
int by_structure(const nvmlUUID_v1_t& uuid) {
    return found([&](nvmlDevice_t* into) { return CUSLICE_REAL_NVML(nvmlDeviceGetHandleByUUIDV)(&uuid, into); });
}
int by_serial_number(const char* serial) {
    return found([&](nvmlDevice_t* into) { return CUSLICE_REAL_NVML(nvmlDeviceGetHandleBySerial)(serial, into); });
}

nvmlUUID_v1_t structure(unsigned type) {
    nvmlUUID_v1_t made{};
    made.version = nvml::struct_version<nvmlUUID_v1_t>(1);
    made.type = type;
    return made;
}
nvmlUUID_v1_t bytes_of(const std::string& uuid) {
    nvmlUUID_v1_t made = structure(NVML_UUID_TYPE_BINARY);
    std::string digits = uuid.substr(4);
    std::erase(digits, '-');
    REQUIRE(digits.size() == 32);
    for (size_t i = 0; i < 16; i++)
        made.value.bytes[i] = static_cast<unsigned char>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
    return made;
}

constexpr int kUninitialized = -NVML_ERROR_UNINITIALIZED, kInvalid = -NVML_ERROR_INVALID_ARGUMENT,
              kNotFound = -NVML_ERROR_NOT_FOUND;

}  // namespace

TEST_CASE("until its GPUs are known NVML answers that it isn't initialised, and writes nothing") {
    const Scene scene(false);
    unsigned count = 77;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetCount)(&count) == NVML_ERROR_UNINITIALIZED);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetCount_v2)(&count) == NVML_ERROR_UNINITIALIZED);
    CHECK(count == 77);
    const auto by_index = [](nvmlDevice_t* into) { return CUSLICE_REAL_NVML(nvmlDeviceGetHandleByIndex_v2)(0, into); };
    CHECK(found(by_index) == kUninitialized);
    CHECK(by_uuid(NvmlScene::gpus.identities[1].uuid) == kUninitialized);
    CHECK(by_pci(NvmlScene::gpus.identities[1].pci) == kUninitialized);
}

TEST_CASE("NVML's virtual GPUs are counted, and had by their numbers") {
    const Scene scene;
    unsigned count = 0;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetCount)(&count) == NVML_SUCCESS);
    CHECK(count == scene.kCount);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetCount_v2)(&count) == NVML_SUCCESS);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetCount)(nullptr) == NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i <= scene.kCount; i++) {
        const int expected = i < scene.kCount ? static_cast<int>(i) : kInvalid;
        CHECK(found([&](nvmlDevice_t* into) { return CUSLICE_REAL_NVML(nvmlDeviceGetHandleByIndex)(i, into); }) ==
              expected);
        CHECK(found([&](nvmlDevice_t* into) { return CUSLICE_REAL_NVML(nvmlDeviceGetHandleByIndex_v2)(i, into); }) ==
              expected);
    }
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetHandleByIndex_v2)(0, nullptr) == NVML_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("a UUID finds the part that has it, and a physical GPU's its first partition") {
    const Scene scene;
    for (unsigned i = 0; i < scene.kCount; i++)
        CHECK(by_uuid(scene.uuid(i)) == static_cast<int>(i));
    CHECK(by_uuid(NvmlScene::gpus.identities[0].uuid) == static_cast<int>(scene.kFirstPart));
    CHECK(by_uuid("GPU-00000000-0000-0000-0000-000000000000") == kNotFound);
    CHECK(by_uuid("") == kNotFound);
    nvmlDevice_t handle = kUntouched;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetHandleByUUID)(nullptr, &handle) == NVML_ERROR_INVALID_ARGUMENT);
    CHECK(handle == kUntouched);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetHandleByUUID)(scene.uuid(0).c_str(), nullptr) == NVML_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("the sixteen bytes of a UUID, and its text in a structure, find the same") {
    const Scene scene;
    for (unsigned i = 0; i < scene.kCount; i++) {
        CHECK(by_structure(bytes_of(scene.uuid(i))) == static_cast<int>(i));
        nvmlUUID_v1_t text = structure(NVML_UUID_TYPE_ASCII);
        // The text may fill its place to the last byte.
        std::memset(text.value.str, 'x', sizeof text.value.str);
        std::memcpy(text.value.str, scene.uuid(i).c_str(), std::min(sizeof text.value.str, scene.uuid(i).size() + 1));
        CHECK(by_structure(text) == static_cast<int>(i));
    }
    CHECK(by_structure(bytes_of(NvmlScene::gpus.identities[0].uuid)) == static_cast<int>(scene.kFirstPart));
    nvmlUUID_v1_t other = bytes_of(scene.uuid(0));
    other.value.bytes[15] ^= 1;
    CHECK(by_structure(other) == kNotFound);
    CHECK(by_structure(structure(NVML_UUID_TYPE_NONE)) == kInvalid);
    other.version++;
    CHECK(by_structure(other) == -NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    nvmlDevice_t handle = kUntouched;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetHandleByUUIDV)(nullptr, &handle) == NVML_ERROR_INVALID_ARGUMENT);
    // One without a UUID is found by none.
    Scene nameless(false);
    NvmlScene::gpus.identities[1].uuid[0] = '\0';
    nameless.open();
    CHECK(by_structure(structure(NVML_UUID_TYPE_BINARY)) == kNotFound);
}

TEST_CASE("a PCI id finds the part that has it in any of its forms, and a physical GPU's its first partition") {
    const Scene scene;
    for (unsigned i = 0; i < scene.kCount; i++) {
        std::string pci = scene.pci(i);
        CHECK(by_pci(pci) == static_cast<int>(i));
        std::transform(pci.begin(), pci.end(), pci.begin(), [](unsigned char letter) { return std::tolower(letter); });
        CHECK(by_pci(pci) == static_cast<int>(i));
        CHECK(by_pci(pci.substr(0, pci.find('.'))) == static_cast<int>(i));
    }
    CHECK(by_pci("0000:81:00.0") == static_cast<int>(scene.kFirstPart));
    CHECK(by_pci("0000:81:00.1") == kNotFound);
    CHECK(by_pci("nonsense") == kInvalid);
    nvmlDevice_t handle = kUntouched;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetHandleByPciBusId_v2)(nullptr, &handle) == NVML_ERROR_INVALID_ARGUMENT);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetHandleByPciBusId_v2)("0000:81:00.0", nullptr) == NVML_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("a board's serial number finds its first partition, and what the library doesn't find is its own answer") {
    const Scene scene;
    CHECK(by_serial_number("0") == static_cast<int>(scene.kFirstPart));
    CHECK(by_serial_number("1") == static_cast<int>(scene.kWhole));
    CHECK(by_serial_number("3") == kNotFound);  // a board of the host that the program isn't shown
    CHECK(by_serial_number("8") == kNotFound);
    CHECK(by_serial_number("broken") == -NVML_ERROR_UNKNOWN);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetHandleBySerial)("0", nullptr) == NVML_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("a virtual GPU's index is its place in the program's order, and any other handle's is the library's") {
    const Scene scene;
    unsigned index = 0;
    for (unsigned i = 0; i < scene.kCount; i++) {
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetIndex)(scene.handle(i), &index) == NVML_SUCCESS);
        CHECK(index == i);
    }
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetIndex)(real_handle(3), &index) == NVML_SUCCESS);
    CHECK(index == 13);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetIndex)(nullptr, &index) == NVML_ERROR_INVALID_ARGUMENT);
    NvmlScene::failing = true;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetIndex)(scene.handle(0), &index) == NVML_ERROR_UNKNOWN);
    CHECK(index == 13);
}

TEST_CASE("a part's UUID is its own where there is room for all of it, and a whole GPU's is the library's answer") {
    const Scene scene;
    char text[96] = "untouched";
    const auto ask = [&](nvmlDevice_t handle, unsigned size) {
        return CUSLICE_REAL_NVML(nvmlDeviceGetUUID)(handle, text, size);
    };
    const nvmlDevice_t part = scene.handle(scene.kSecondPart);
    const std::string uuid = scene.uuid(scene.kSecondPart);
    const auto length = static_cast<unsigned>(uuid.size());
    CHECK(ask(part, length) == NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK(std::string(text) == "untouched");
    std::memset(text, 'x', sizeof text - 1);
    CHECK(ask(part, length + 1) == NVML_SUCCESS);
    CHECK(text == uuid);
    CHECK(text[length + 1] == 'x');
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetUUID)(part, nullptr, 96) == NVML_ERROR_INVALID_ARGUMENT);
    CHECK(ask(scene.handle(scene.kWhole), 96) == NVML_SUCCESS);
    CHECK(std::string(text) == "physical 1");
    CHECK(ask(real_handle(3), 96) == NVML_SUCCESS);
    CHECK(std::string(text) == "physical 3");
}

TEST_CASE("a part's PCI address is its own in every structure, and the rest of them is its GPU's") {
    const Scene scene;
    const nvmlDevice_t part = scene.handle(scene.kSecondPart), whole = scene.handle(scene.kWhole);
    // The parts of the GPU at 0000:81:00.0 are in domains of their own.
    const std::string pci = scene.pci(scene.kSecondPart);
    const auto domain = static_cast<unsigned>(std::stoul(pci, nullptr, 16));
    REQUIRE(pci.substr(8) == ":81:00.0");
    char legacy[32], full[32];
    std::snprintf(legacy, sizeof legacy, "%04X:81:00.0", domain);
    std::snprintf(full, sizeof full, "%08X:81:00.0", domain);
    for (const int form : {1, 2, 3}) {
        CAPTURE(form);
        const auto ask = [&](nvmlDevice_t gpu, nvmlPciInfo_t& info) {
            if (form == 1)
                return CUSLICE_REAL_NVML(nvmlDeviceGetPciInfo)(gpu, &info);
            if (form == 2)
                return CUSLICE_REAL_NVML(nvmlDeviceGetPciInfo_v2)(gpu, &info);
            return CUSLICE_REAL_NVML(nvmlDeviceGetPciInfo_v3)(gpu, &info);
        };
        nvmlPciInfo_t info{};
        REQUIRE(ask(part, info) == NVML_SUCCESS);
        CHECK(std::string(info.busIdLegacy) == legacy);
        CHECK(std::string(info.busId) == (form == 3 ? full : ""));
        CHECK(info.domain == domain);
        CHECK(info.bus == 0x81);
        CHECK(info.device == 0);
        CHECK(info.pciDeviceId == 4);
        info = {};
        REQUIRE(ask(whole, info) == NVML_SUCCESS);
        CHECK(std::string(info.busIdLegacy) == "legacy");
        CHECK(info.bus == 2);
        info = {};
        NvmlScene::failing = true;
        CHECK(ask(part, info) == NVML_ERROR_UNKNOWN);
        CHECK(info.domain == 0);
        NvmlScene::failing = false;
    }
    nvmlPciInfoExt_v1_t info{};
    REQUIRE(CUSLICE_REAL_NVML(nvmlDeviceGetPciInfoExt)(part, &info) == NVML_SUCCESS);
    CHECK(std::string(info.busId) == full);
    CHECK(info.domain == domain);
    CHECK(info.bus == 0x81);
    CHECK(info.device == 0);
    CHECK(info.pciDeviceId == 4);
    REQUIRE(CUSLICE_REAL_NVML(nvmlDeviceGetPciInfoExt)(whole, &info) == NVML_SUCCESS);
    CHECK(std::string(info.busId) == "long");
    NvmlScene::failing = true;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetPciInfoExt)(part, &info) == NVML_ERROR_UNKNOWN);
    CHECK(std::string(info.busId) == "long");
}
