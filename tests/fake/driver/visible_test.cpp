// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "config/visible.h"
#include "fake/driver/visible.h"
#include "fake/spec/mig.h"
#include "tests/catch.h"

using namespace cuslice::fake;

namespace {

/// Three GPUs in PCI order, of which the middle one is fastest; the indices that are seen.
std::string seen(const char* visible, const char* order) {
    MachineSpec machine(3);
    for (size_t i = 0; i < 3; i++) {
        machine[i].index = static_cast<int>(i);
        machine[i].uuid[0] = static_cast<unsigned char>(0x10 + i);
        machine[i].uuid[1] = 0xab;
        machine[i].multiprocessors = i == 1 ? 100 : 10;
        machine[i].cores_per_multiprocessor = machine[i].clock = 1;
    }
    std::string indices;
    for (const GpuSpec& gpu : visible_gpus(machine, visible, order))
        indices += std::to_string(gpu.index);
    return indices;
}

}  // namespace

TEST_CASE("order: fastest first, or as on the bus") {
    CHECK(seen(nullptr, nullptr) == "102");
    CHECK(seen(nullptr, "FASTEST_FIRST") == "102");
    CHECK(seen(nullptr, "PCI_BUS_ID") == "012");
}

TEST_CASE("the visible list") {
    const char* bus = "PCI_BUS_ID";
    CHECK(seen("2,0", bus) == "20");
    CHECK(seen("0", nullptr) == "1");
    CHECK(seen("", bus).empty());
    CHECK(seen("-1", bus).empty());
    CHECK(seen("2,9,0", bus) == "2");
    CHECK(seen("2,x,0", bus) == "2");
    CHECK(seen("0,0", bus).empty());
    CHECK(seen(" 1 , 2 ", bus) == "12");
    CHECK(seen("GPU-11", bus) == "1");
    CHECK(seen("GPU-12,GPU-10", bus) == "20");
    CHECK(seen("GPU-11AB", bus) == "1");
    CHECK(seen("GPU-11aB", bus) == "1");
    CHECK(seen("gpu-11ab", bus).empty());
    CHECK(seen("GPU-12,0", bus) == "2");  // of one kind
    CHECK(seen("2,GPU-10", bus) == "2");
    CHECK(seen("GPU-12,GPU-12", bus).empty());
    CHECK(seen("GPU-12,GPU-77,GPU-10", bus) == "2");
    CHECK(seen("MIG-12", bus).empty());
    CHECK(seen("1gpu2,2ampere", bus) == "12");
    CHECK(seen("1 2", bus) == "1");
    CHECK(seen("gpu1,2", bus).empty());
    CHECK(seen("GPU-1", bus).empty());  // three begin so
    CHECK(seen("GPU-77,0", bus).empty());
}

TEST_CASE("of MIG instances a process sees one, and nothing beside it") {
    MachineSpec machine(2);
    machine[0].memory = 80ULL << 30;
    machine[0].mig = {"1g.10gb", "2g.20gb"};
    for (unsigned char i = 0; i < 2; i++)
        machine[i].uuid[0] = i + 1;
    const std::vector<GpuSpec> instances = instances_of(machine[0]);
    const std::string first = uuid_text(instances[0]), second = uuid_text(instances[1]), whole = uuid_text(machine[1]);
    const auto names = [&](const char* visible) {
        std::string list;
        for (const GpuSpec& gpu : visible_gpus(machine, visible, "PCI_BUS_ID"))
            list += uuid_text(gpu) + " ";
        return list;
    };
    CHECK(names(nullptr) == first + " ");
    CHECK(names("0") == first + " ");
    CHECK(names("1") == whole + " ");
    CHECK(names("1,0") == first + " ");
    CHECK(names("2").empty());  // instances have no index
    CHECK(names(second.c_str()) == second + " ");
    CHECK(names((second + "," + first).c_str()) == second + " ");
    CHECK(names((whole + "," + second).c_str()) == second + " ");
    CHECK(names("MIG-").empty());  // two begin so
    CHECK(names(uuid_text(machine[0]).c_str()) == first + " ");
}

TEST_CASE("cuslice reads a visible list as the fake driver does, which has a reader of its own") {
    std::vector<cuslice::GpuIdentity> gpus(3);
    for (size_t i = 0; i < gpus.size(); i++) {
        Uuid uuid{};
        uuid[0] = static_cast<unsigned char>(0x10 + i);
        uuid[1] = 0xab;
        gpus[i].index = static_cast<int>(i);
        uuid_text(uuid).copy(gpus[i].uuid, sizeof gpus[i].uuid - 1);
    }
    const std::vector<std::string> parts{"0", "1", "2",    "3",     "-",    "+",  ",", ",",
                                         " ", "x", "GPU-", "GPU-1", "MIG-", "\t", "a", "B"};
    std::mt19937 random(7);
    unsigned visible = 0;
    for (int i = 0; i < 50000; i++) {
        std::string list;
        for (size_t left = random() % 7; left > 0; left--)
            list += parts[random() % parts.size()];
        std::string ours;
        const cuslice::GpuPlaces places = cuslice::read_cuda_list(list, gpus);
        for (const uint8_t place : places.view())
            ours += std::to_string(place);
        INFO('"' << list << '"');
        REQUIRE(ours == seen(list.c_str(), "PCI_BUS_ID"));
        visible += !ours.empty();
    }
    CHECK(visible > 5000);
}
