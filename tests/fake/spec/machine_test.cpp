// SPDX-License-Identifier: Apache-2.0
// Values that CUSLICE_FAKE may hold, and the errors for anything else.

#include "fake/spec/machine.h"

#include <cstddef>
#include <fstream>
#include <tuple>

#include "fake/spec/keys.h"
#include "fake/spec/mig.h"
#include "tests/catch.h"
#include "tests/fake/child.h"

using namespace cuslice::fake;

namespace {

MachineSpec good(const std::string& spec) {
    MachineSpec machine;
    std::string error;
    INFO(spec);
    const bool parsed = parse_machine(spec, PROFILES, machine, error);
    INFO(error);
    REQUIRE(parsed);
    return machine;
}

std::string bad(const std::string& spec) {
    MachineSpec machine;
    std::string error;
    INFO(spec);
    REQUIRE_FALSE(parse_machine(spec, PROFILES, machine, error));
    return error;
}

/// A file with this text, and its path.
struct File {
    explicit File(const std::string& text) : path(folder.path() + "/gpus.toml") { std::ofstream(path) << text; }
    fake_test::Folder folder;
    std::string path;
};

const char* const known = "a100-40g, a100-80g, b200, gb10, h100, h200, l4, laptop-2g, rtx3090, rtx4090, t4, v100-16g";

}  // namespace

TEST_CASE("a list of profiles gives that many GPUs in that order") {
    const MachineSpec machine = good(" 2xA100-40G, 1xt4,laptop-2g ");
    REQUIRE(machine.size() == 4);
    CHECK(machine[0].profile == "a100-40g");
    CHECK(machine[1].profile == "a100-40g");
    CHECK(machine[2].name == "Tesla T4");
    CHECK(machine[3].memory == 2002ULL << 20);
    for (int i = 0; i < 4; i++)
        CHECK(machine[static_cast<size_t>(i)].index == i);
}

TEST_CASE("identities are distinct, and the same at every reading") {
    const MachineSpec first = good("8xh200"), again = good("8xh200");
    for (size_t i = 0; i < 8; i++) {
        CHECK(first[i].uuid == again[i].uuid);
        CHECK(first[i].pci == again[i].pci);
        for (size_t j = 0; j < i; j++) {
            CHECK(first[i].uuid != first[j].uuid);
            CHECK_FALSE(first[i].pci == first[j].pci);
        }
    }
}

TEST_CASE("every profile is complete and plausible") {
    const std::string names = known_keys(true);
    for (const char* profile : {"laptop-2g", "t4", "v100-16g", "a100-40g", "a100-80g", "h100", "h200", "rtx4090",
                                "rtx3090", "l4", "b200", "gb10"}) {
        INFO(profile);
        const GpuSpec gpu = good(profile)[0];
        CHECK(gpu.memory >= 2002ULL << 20);
        CHECK(gpu.memory % (64 << 10) == 0);
        CHECK(gpu.context >= 100ULL << 20);
        CHECK(gpu.context < gpu.memory / 4);
        CHECK(gpu.pool_chunk > 0);
        CHECK(gpu.major >= 5);
        CHECK((gpu.pci_device_id & 0xffff) == 0x10de);
    }
}

TEST_CASE("what is wrong with a list is said whole") {
    CHECK(bad("") ==
          std::string(
              "no fake GPU is named; write it as 2xa100-40g,1xt4 or as the path of a TOML file. The profiles are: ") +
              known);
    CHECK(bad("2xk80") == std::string("there is no profile 'k80'; the profiles are: ") + known);
    CHECK(bad("t4,,t4") == "'t4,,t4' has an empty item; write it as 2xa100-40g,1xt4");
    CHECK(bad("0xt4") == "'0xt4' asks for 0 GPUs; 1 to 64 are possible");
    CHECK(bad("65xt4") == "'65xt4' asks for 65 GPUs; 1 to 64 are possible");
    CHECK(bad("60xt4,60xl4") == "'60xt4,60xl4' asks for 120 GPUs; 64 are possible");
    CHECK(bad("2x") == std::string("'2x' names no profile; write it as 2xt4. The profiles are: ") + known);
}

TEST_CASE("a file overrides a profile") {
    const File file(
        "[[gpu]]\nprofile = \"T4\"\nmemory = \"2002MiB\"\ncontext = 0\nname = \"Mine\"\n"
        "uuid = \"GPU-01234567-89ab-cdef-0123-456789abcdef\"\npci = \"ae:00.0\"\necc = false\n"
        "[[gpu]]\nprofile = \"l4\"\ncount = 2\ncompute-capability = \"9.0\"\nmultiprocessors = 7\n");
    const MachineSpec machine = good(file.path);
    REQUIRE(machine.size() == 3);
    // PCI order, not the file's: ae:00.0 comes last.
    CHECK(machine[2].name == "Mine");
    CHECK(machine[2].memory == 2002ULL << 20);
    CHECK(machine[2].context == 0);
    CHECK_FALSE(machine[2].ecc);
    CHECK(uuid_text(machine[2].uuid) == "GPU-01234567-89ab-cdef-0123-456789abcdef");
    CHECK(pci_text(machine[2].pci) == "0000:AE:00.0");  // as the driver and NVML write it
    CHECK(machine[0].major == 9);
    CHECK(machine[1].multiprocessors == 7);
    CHECK(machine[0].uuid != machine[1].uuid);
}

TEST_CASE("what is wrong with a file is said with line and column") {
    const auto message = [](const std::string& text) {
        const File file(text);
        const std::string error = bad(file.path);
        REQUIRE(error.rfind(file.path, 0) == 0);
        return error.substr(file.path.size());
    };
    CHECK(message("[[gpu]]\nprofile = \"t4\"\nmemroy = \"1GiB\"\n") ==
          ":3:1: unknown key 'memroy'; the keys are: " + known_keys(false));
    CHECK(message("[[gpu]]\nprofile = \"t4\"\nmemory = \"2002\"\n") ==
          ":3:10: memory: 2002 bytes? A size needs its unit: did you mean \"2002MiB\"?");
    CHECK(message("[[gpu]]\nprofile = \"t4\"\nmemory = 2002\n") ==
          ":3:10: memory: 2002 bytes? A size needs its unit: did you mean \"2002MiB\"?");
    CHECK(message("[[gpu]]\nmemory = \"1GiB\"\n") ==
          std::string(":1:1: [[gpu]] needs a profile; the profiles are: ") + known);
    CHECK(message("[[gpu]]\nprofile = \"t5\"\n") ==
          std::string(":2:11: there is no profile 't5'; the profiles are: ") + known);
    CHECK(message("gpus = 1\n") == ":1:1: unknown key 'gpus'; the file holds [[gpu]] tables and one [driver]");
    CHECK(message("[[gpu]]\nprofile = \"t4\"\ncount = 0\n") == ":3:9: count = 0 is not within 1 to 64");
    CHECK(message("[[gpu]]\nprofile = \"t4\"\ncount = 2\npci = \"81:00.0\"\n") ==
          ":1:1: count and uuid or pci exclude each other");
    CHECK(message("[[gpu]]\nprofile = \"t4\"\ncompute-capability = 8.0\n") ==
          ":3:22: compute-capability must be a string from \"5.0\" to \"12.9\"");
    CHECK(message("[[gpu]]\nprofile = \"t4\"\nbrand = \"voodoo\"\n") ==
          ":3:9: brand = \"voodoo\"; it is one of geforce, tesla, nvidia, quadro, titan");
    CHECK(message("[[gpu]]\nprofile = \"t4\"\necc = 1\n") == ":3:7: ecc must be true or false");
    CHECK(message("").find(": no [[gpu]] table") == 0);
    CHECK(message("[[gpu]\n").rfind(":1:", 0) == 0);
    CHECK(bad("/no/such.toml").rfind("/no/such.toml", 0) == 0);
}

TEST_CASE("a file says which driver the machine has, and how it behaves") {
    const DriverSpec usual = good("t4")[0].driver;
    CHECK(usual.cuda_version() == 13000);
    CHECK(usual.listed_pid(7) == 7);
    const File file(
        "[driver]\nversion = \"535.183.06\"\ninit-time = \"1s\"\nnvml-time = \"5ms\"\nprocess-list = \"empty\"\n"
        "process-id-offset = -3\nprocess-memory = false\n[[gpu]]\nprofile = \"t4\"\ncount = 2\n");
    for (const GpuSpec& gpu : good(file.path)) {
        CHECK(gpu.driver.branch() == 535);
        CHECK(gpu.driver.cuda_version() == 12020);
        CHECK(gpu.driver.init_time == 1000000000);
        CHECK(gpu.driver.nvml_time == 5000000);
        CHECK(gpu.driver.process_list == "empty");
        CHECK(gpu.driver.listed_pid(7) == 4);
        CHECK_FALSE(gpu.driver.process_memory);
    }
    DriverSpec driver;
    driver.process_id_offset = 100;
    for (const auto& [version, cuda, pid] : {std::tuple{"450.248.02", 11000, 107},
                                             {"460.106.00", 11020, 107},
                                             {"465.31", 11030, 107},
                                             {"470.82.01", 11040, 107},
                                             {"544.0", 12020, 107},
                                             {"545.23.06", 12030, 7},
                                             {"591.0", 13010, 7}}) {
        driver.version = version;
        CHECK(driver.cuda_version() == cuda);
        CHECK(driver.listed_pid(7) == pid);
        CHECK(driver.tells_reserved() == (driver.branch() >= 510));
    }
}

TEST_CASE("a machine's libcuda may be newer than the driver's release") {
    const File file("[driver]\ncuda = \"13.4\"\nversion = \"535.183.06\"\n[[gpu]]\nprofile = \"t4\"\n");
    const DriverSpec driver = good(file.path)[0].driver;
    CHECK(driver.branch() == 535);
    CHECK(driver.release_cuda_version() == 12020);
    CHECK(driver.cuda_version() == 13040);
}

TEST_CASE("what is wrong with a driver is said with line and column") {
    const auto message = [](const std::string& key) {
        const File file("[driver]\n" + key + "\n[[gpu]]\nprofile = \"t4\"\n");
        return bad(file.path).substr(file.path.size());
    };
    CHECK(message("verison = \"535.1\"") ==
          ":2:1: unknown key 'verison'; the keys are: version, cuda, init-time, nvml-time, process-list, "
          "process-id-offset, "
          "process-memory");
    for (const char* cuda : {"\"13\"", "\"10.2\"", "\"13.4.1\"", "\"new\"", "13.4"})
        CHECK(message(std::string("cuda = ") + cuda).find(":2:8: cuda must") == 0);
    CHECK(message("cuda = \"12.9\"") == ":2:8: cuda is older than what driver 580.95.05 brings");
    for (const char* version : {"\"535\"", "\"418.1\"", "\"535.1.2.3\"", "\"new\"", "535"})
        CHECK(message(std::string("version = ") + version).find(":2:11: version must") == 0);
    CHECK(message("init-time = \"1\"") ==
          ":2:13: init-time must be a duration with its unit, such as \"1s\" or \"5ms\"");
    CHECK(message("process-list = \"none\"") == ":2:16: process-list is one of listed, empty, unsupported");
    CHECK(message("process-id-offset = \"1\"") == ":2:21: process-id-offset must be a whole number");
    CHECK(message("process-memory = 0") == ":2:18: process-memory must be true or false");
}

TEST_CASE("MIG divides a GPU into instances that are no more than it") {
    const File file("[[gpu]]\nprofile = \"h200\"\nmig = [\"1g.18gb\", \"3g.71gb\", \"1g.35gb\"]\n");
    const GpuSpec gpu = good(file.path)[0];
    const std::vector<GpuSpec> instances = instances_of(gpu);
    REQUIRE(instances.size() == 3);
    CHECK(instances[0].name == "NVIDIA H200 MIG 1g.18gb");
    uint64_t memory = 0;
    for (const GpuSpec& instance : instances) {
        CHECK(uuid_text(instance).rfind("MIG-", 0) == 0);
        CHECK(instance.uuid != gpu.uuid);
        CHECK(instance.pci == gpu.pci);
        memory += instance.memory;
    }
    CHECK(instances[1].memory / (1 << 30) == instances[0].memory * 4 / (1 << 30));
    CHECK(instances[2].memory / (1 << 30) == instances[0].memory * 2 / (1 << 30));
    CHECK(memory <= gpu.memory);
    CHECK(uuid_text(instances_of(good(file.path)[0])[1]) == uuid_text(instances[1]));

    const auto message = [](const std::string& list) {
        const File wrong("[[gpu]]\nprofile = \"h200\"\nmig = " + list + "\n");
        return bad(wrong.path).substr(wrong.path.size());
    };
    CHECK(message("\"1g.18gb\"") == ":3:7: mig must be a list of instances, such as [\"1g.18gb\"]");
    CHECK(message("[\"8g.141gb\"]").find(":3:7: mig: \"8g.141gb\" is no instance of this GPU") == 0);
    CHECK(message("[1]").find(":3:7: mig: \"\" is no instance") == 0);
    CHECK(message("[\"4g.71gb\", \"4g.71gb\"]") ==
          ":3:7: mig: the instances are more than the GPU: they have 8 of 7 compute and 8 of 8 memory slices");
}

TEST_CASE("two GPUs with one identity are refused") {
    const File file(
        "[[gpu]]\nprofile = \"t4\"\npci = \"81:00.0\"\n[[gpu]]\nprofile = \"l4\"\npci = \"0000:81:00.0\"\n");
    CHECK(bad(file.path) == "two GPUs have the PCI address 0000:81:00.0");
}
