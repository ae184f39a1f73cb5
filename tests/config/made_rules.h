// SPDX-License-Identifier: Apache-2.0
// A machine in a folder: its rules, and what it says of a process.
#pragma once

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "config/resolve.h"
#include "tests/catch.h"
#include "tests/cli/child.h"

namespace cuslice {

using tests::Folder;

inline int opened = 0;

inline cuslice_toml_parse_function* open_module(Reason& why) {
    ++opened;
    void* const module = ::dlopen(CUSLICE_TEST_MODULE, RTLD_NOW | RTLD_LOCAL);
    void* const function = module == nullptr ? nullptr : ::dlsym(module, "cuslice_toml_parse");
    if (function == nullptr)
        why.assign(::dlerror());
    return reinterpret_cast<cuslice_toml_parse_function*>(function);
}

inline const GpuIdentity kGpu{0, "GPU-5f10", "0000:01:00.0"};
inline const GpuIdentity kOther{1, "GPU-5f20", "0000:81:00.0"};
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

/// "30/100 by --share -": weight, cap and origin on both GPUs; "-" where there is no share.
inline std::string text_of_shares(const Settings& settings) {
    const auto text_on = [&](const GpuIdentity& gpu) -> std::string {
        const std::optional<TimeShare> share = share_for(settings, gpu);
        if (!share)
            return "-";
        return std::to_string(share->weight) + "/" + std::to_string(share->cap) + " by " + std::string(share->origin);
    };
    return text_on(kGpu) + " " + text_on(kOther);
}

/// A machine in a folder: its rules, its users and groups, and what /proc says of this process.
struct Made {
    Made() {
        folder.write("etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:" + std::to_string(::getuid()) +
                                       ":1::/:/bin/sh\n" + "alicia:x:4000000001:1::/:/bin/sh\n");
        folder.write("etc/group", "students:x:" + std::to_string(::getgid()) + ":\nstaff:x:4000000002:alice\n");
        folder.write("proc/self/cgroup",
                     "4:memory:/old/job_7\n0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0\n");
        link("proc/self/exe", "/usr/bin/python3.11");
        link("proc/self/ns/user", "user:[4026531837]");
        link("proc/self/ns/cgroup", "cgroup:[4026531835]");
    }
    void link(const std::string& name, const std::string& target) {
        // Never written through a link that is there already: it may lead out of the folder.
        const std::filesystem::path path = folder.path() + "/" + name;
        std::filesystem::create_directories(path.parent_path());
        std::filesystem::remove(path);
        std::filesystem::create_symlink(target, path);
    }
    std::string rules(const std::string& name, const std::string& text) {
        const std::string path = folder.write("rules.d/" + name, text);
        REQUIRE(::chmod(path.c_str(), 0644) == 0);
        REQUIRE(::chmod((folder.path() + "/rules.d").c_str(), 0755) == 0);
        return path;
    }
    bool load(Settings& settings, const std::vector<std::string>& environment, ConfigError& error,
              unsigned owner = ::geteuid()) {
        std::vector<const char*> lines;
        for (const std::string& line : environment)
            lines.push_back(line.c_str());
        lines.push_back(nullptr);
        const std::string system = folder.path() + "/system.toml";
        return load_in_program(settings, lines.data(), open_module, {system.c_str(), folder.path().c_str(), owner},
                               error);
    }
    /// "4294967296 by CUSLICE_LIMIT", or the line that refuses.
    std::string seen(const std::vector<std::string>& environment = {}, const GpuIdentity& gpu = kGpu,
                     unsigned owner = ::geteuid()) {
        Settings settings;
        ConfigError error;
        if (!load(settings, environment, error, owner))
            return std::string(line_of(error).view());
        const Amount amount = amount_for(settings, gpu, 8 * kGiB);
        return std::to_string(amount.bytes) + " by " + std::string(amount.origin);
    }
    /// As text_of_shares() has them, or the line that refuses.
    std::string shares(const std::vector<std::string>& environment = {}) {
        Settings settings;
        ConfigError error;
        if (!load(settings, environment, error))
            return std::string(line_of(error).view());
        return text_of_shares(settings);
    }
    /// True if a rule with these conditions is for this process.
    bool fits(const std::string& conditions, bool with_limit = true) {
        rules("10.toml", "[[rule]]\nname = \"tried\"\n" + conditions + (with_limit ? "\nlimit = \"1GiB\"\n" : "\n") +
                             "[[rule]]\nname = \"rest\"\nlimit = \"2GiB\"\n");
        const std::string said = seen();
        INFO(said);
        const bool tried = said.starts_with(with_limit ? "1073741824 by rule tried (" : "8589934592 by ");
        REQUIRE((tried || said.starts_with("2147483648 by rule rest (")));
        return tried;
    }

    Folder folder;
};

inline std::string refused(const std::string& text) {
    Made made;
    const std::string path = made.rules("10.toml", text);
    const std::string said = made.seen();
    REQUIRE(said.starts_with("cuslice: " + path));
    return said.substr(("cuslice: " + path).size());
}

}  // namespace cuslice
