// SPDX-License-Identifier: Apache-2.0
// dmem.max of cgroup v2: a ceiling of the kernel's.
#include <unistd.h>

#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "tests/catch.h"
#include "tests/cli/child.h"

namespace cuslice {
namespace {

using tests::Folder;

cuslice_toml_parse_function* no_module(Reason& why) {
    why.assign("no file is to be read");
    return nullptr;
}

constexpr uint64_t kMiB = uint64_t{1} << 20, kTotal = 8192 * kMiB;
const GpuIdentity kGpu{0, "GPU-5f10", "00000000:01:00.0"};
const GpuIdentity kOther{1, "GPU-5f20", "00000000:81:00.0"};

// A machine in a folder, and a process of it in /a/b.
struct Made {
    Made() {
        folder.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc dmem\n");
        folder.write("proc/self/cgroup", "4:memory:/old\n0::/a/b\n");
    }
    void dmem(const std::string& cgroup, const std::string& text) const {
        folder.write("sys/fs/cgroup" + cgroup + "/dmem.max", text);
    }
    void load(Settings& settings, const std::vector<std::string>& environment = {}) const {
        std::vector<const char*> lines;
        for (const std::string& line : environment)
            lines.push_back(line.c_str());
        lines.push_back(nullptr);
        const std::string system = folder.path() + "/system.toml";
        ConfigError error;
        CHECK(load_in_program(settings, lines.data(), no_module, {system.c_str(), folder.path().c_str(), ::geteuid()},
                              error));
        CHECK(check_against(settings, std::span(&kGpu, 1), true, error));
    }
    // "4096 by dmem.max of cgroup /a", in MiB.
    std::string seen(const std::vector<std::string>& environment = {}, const GpuIdentity& gpu = kGpu) const {
        Settings settings;
        load(settings, environment);
        const Amount amount = amount_for(settings, gpu, kTotal);
        return std::to_string(amount.bytes / kMiB) + " by " + std::string(amount.origin);
    }
    Folder folder;
};

}  // namespace

TEST_CASE("dmem.max of a process's cgroup is a ceiling on the GPU that has its PCI id") {
    const Made made;
    CHECK(made.seen() == "8192 by ");
    made.dmem("/a/b",
              "drm/0000:03:00.0/vram0 1048576\ndrm/0000:01:00.0/stolen 1048576\n"
              "drm/0000:01:00.0/vram0 4294967296\n");
    CHECK(made.seen() == "4096 by dmem.max of cgroup /a/b");
    CHECK(made.seen({}, kOther) == "8192 by ");
    CHECK(made.seen({"CUSLICE_LIMIT=6GiB"}) == "4096 by dmem.max of cgroup /a/b");
    CHECK(made.seen({"CUSLICE_LIMIT=1GiB"}) == "1024 by CUSLICE_LIMIT");
    CHECK(made.seen({"CUSLICE_SETTINGS=1;flag.0 limit * 6GiB --limit"}) == "4096 by dmem.max of cgroup /a/b");
    made.dmem("/a/b", "drm/0000:01:00.0/vram0 max\n");
    CHECK(made.seen() == "8192 by ");
    made.dmem("/a/b", "drm/0000:01:00.0/vram0 0\n");
    CHECK(made.seen() == "0 by dmem.max of cgroup /a/b");
}

TEST_CASE("the smallest dmem.max of a cgroup and those around it holds, and says which one it is of") {
    const Made made;
    made.dmem("/a/b", "drm/0000:01:00.0/vram0 4294967296\n");
    made.dmem("/a", "drm/0000:01:00.0/vram0 3221225472\ndrm/0000:81:00.0/vram0 2147483648\n");
    CHECK(made.seen() == "3072 by dmem.max of cgroup /a");
    CHECK(made.seen({}, kOther) == "2048 by dmem.max of cgroup /a");
    made.dmem("/a/b", "drm/0000:01:00.0/vram0 1073741824\ndrm/0000:81:00.0/vram0 max\n");
    CHECK(made.seen() == "1024 by dmem.max of cgroup /a/b");
    CHECK(made.seen({}, kOther) == "2048 by dmem.max of cgroup /a");
    // In a container the cgroup namespace begins below the root, so that its top has a dmem.max too.
    made.dmem("", "drm/0000:01:00.0/vram0 536870912\n");
    CHECK(made.seen() == "512 by dmem.max of cgroup /");
    made.folder.write("proc/self/cgroup", "0::/../other\n");
    made.folder.write("sys/fs/other/dmem.max", "drm/0000:01:00.0/vram0 1048576\n");
    CHECK(made.seen() == "512 by dmem.max of cgroup /");
    made.folder.write("proc/self/cgroup", "0::/\n");
    CHECK(made.seen() == "512 by dmem.max of cgroup /");
}

TEST_CASE("dmem.max holds beside the system's ceiling, and isn't handed on") {
    const Made made;
    made.dmem("/a", "drm/0000:01:00.0/vram0 3221225472\n");
    const std::vector<std::string> ceiling = {"CUSLICE_SETTINGS=1;system-file.0 ceiling.limit 0 1GiB ceiling%20/x:1:1"};
    CHECK(made.seen(ceiling) == "1024 by ceiling /x:1:1");
    const std::vector<std::string> larger = {"CUSLICE_SETTINGS=1;system-file.0 ceiling.limit 0 4GiB ceiling%20/x:1:1"};
    CHECK(made.seen(larger) == "3072 by dmem.max of cgroup /a");
    Settings settings;
    made.load(settings, {"CUSLICE_LIMIT=6GiB"});
    std::string text(4096, '\0');
    text.resize(write_handover(settings, text));
    CHECK(text == "1;environment.0 limit * 6GiB CUSLICE_LIMIT");
}

TEST_CASE("what is no dmem.max limits nothing") {
    const Made made;
    for (const char* line : {"drm/0000:01:00.0 1024", "drm/0000:01:00.0/vram0", "drm/0000:01:00.0/vram0 -1",
                             "drm/0000:01:00.0/vram0 1 2", "drm/card0/vram0 1024", "drm/0/vram0 1024", "drm", "",
                             "xrm/0000:01:00.0/vram0 1024", "drm/0000:01:00.0/vram0 99999999999999999999"}) {
        INFO(line);
        made.dmem("/a", std::string(line) + "\n");
        CHECK(made.seen() == "8192 by ");
    }
    made.dmem("/a", "drm/0000:01:00.0/vram0 1073741824\n");
    CHECK(made.seen() == "1024 by dmem.max of cgroup /a");
    for (const char* none : {"4:memory:/a\n", "", "0::\n"}) {
        made.folder.write("proc/self/cgroup", none);
        CHECK(made.seen() == "8192 by ");
    }
    made.folder.write("proc/self/cgroup", "0::/a\n");
    made.folder.write("sys/fs/cgroup/cgroup.controllers", "cpu memory dmem2\n");
    CHECK(made.seen() == "8192 by ");
}

}  // namespace cuslice
