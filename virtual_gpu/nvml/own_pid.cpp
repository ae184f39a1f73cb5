// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/nvml/own_pid.h"

#include <fcntl.h>
#include <unistd.h>

#include "config/number.h"
#include "config/text.h"
#include "policy/base/held_signals.h"
#include "virtual_gpu/driver/nvml_table.h"

namespace cuslice {

namespace {

constexpr unsigned kListsInCallersNamespace = 545;
// PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h: what the first pid namespace is called, on every machine.
constexpr std::string_view kFirstNamespace = "pid:[4026531836]";

std::string_view read_file(const char* path, char* text, size_t size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return {};
    const ssize_t length = read(fd, text, size);
    close(fd);
    return {text, length > 0 ? static_cast<size_t>(length) : 0};
}

bool lists_own_pid(const PidFacts& facts) { return facts.first_namespace || facts.driver >= kListsInCallersNamespace; }

}  // namespace

unsigned pid_in_nvml(const PidFacts& facts) {
    if (lists_own_pid(facts))
        return facts.own;
    return facts.outermost != facts.own ? facts.outermost : 0;  // 0 where there is no /proc
}

unsigned outermost_pid(std::string_view status) {
    constexpr std::string_view kKey = "\nNSpid:\t";
    const size_t at = status.find(kKey);
    unsigned pid = 0;
    if (at == status.npos)
        return 0;
    for (const char digit : slice(status, at + kKey.size())) {
        if (digit < '0' || digit > '9')
            break;
        pid = pid * 10 + static_cast<unsigned>(digit - '0');
    }
    return pid;
}

PidFacts pid_facts() {
    PidFacts facts;
    char text[4096];
    facts.own = static_cast<unsigned>(getpid());
    const ssize_t length = readlink("/proc/self/ns/pid", text, sizeof(text));
    facts.first_namespace = length > 0 && std::string_view(text, static_cast<size_t>(length)) == kFirstNamespace;
    if (lists_own_pid(facts))
        return facts;
    const HeldSignals held;
    char version[80] = "";  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
    if (CUSLICE_PHYSICAL_NVML(nvmlSystemGetDriverVersion)(version, sizeof(version)) == NVML_SUCCESS)
        facts.driver = static_cast<unsigned>(read_number(version));
    if (lists_own_pid(facts))
        return facts;
    facts.outermost = outermost_pid(read_file("/proc/self/status", text, sizeof(text)));
    return facts;
}

}  // namespace cuslice
