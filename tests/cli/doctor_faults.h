// SPDX-License-Identifier: Apache-2.0
// The faults that `cuslice doctor` is to find, written down before the command: what is seeded, and under which name it
// is reported. Each is a case of doctor_test.cpp.
#pragma once

namespace cuslice::tests {

struct Fault {
    /// The name of the finding, as --json and the first column have it.
    const char* name;
    const char* seeded;
};

inline constexpr Fault kFaults[] = {
    {"installation-file", "a library of the installation is missing"},
    {"installation-path", "the installation lies in a folder with a space in its name"},
    {"library-preload", "libcuslice.so is damaged, and ld.so refuses to preload it"},
    {"proc", "/proc is not mounted"},
    {"settings", "a file of settings has a wrong value"},
    {"settings", "a file of settings can't be read"},
    {"settings", "a variable CUSLICE_... is misspelt"},
    {"gpus", "a limit is for a GPU that is not there"},
    {"unserved-variable", "a variable of HAMi or MPS asks for what cuslice does not do"},
    {"driver-missing", "there is no driver"},
    {"driver-stub", "LD_LIBRARY_PATH leads to the toolkit's stub of the driver"},
    {"driver-start", "the driver starts without a device"},
    {"nvml-missing", "there is a driver, and no NVML"},
    {"nvml-hangs", "NVML does not answer"},
    {"nvml-version", "NVML is of another version than the kernel's driver"},
    {"gpus-hidden", "CUDA_VISIBLE_DEVICES hides every GPU"},
    {"folder-missing", "the sharing folder is not there and can't be made"},
    {"folder-kind", "the sharing folder is a file"},
    {"folder-sticky", "everybody may delete what is in the sharing folder"},
    {"folder-rights", "the sharing folder is another user's alone"},
    {"folder-space", "the sharing folder's file system is full"},
    {"folder-locks", "the sharing folder's file system has no locks"},
    {"file-size", "ulimit -f is too small for a ledger"},
    {"remove-ipc", "logind empties /dev/shm when the user logs out"},
    {"container-folder", "a container has a /dev/shm of its own"},
    {"pid-namespace", "a pid namespace of its own, on a driver before 545"},
    {"mps-pipe", "the folder of MPS's pipes is misspelt"},
    {"mps-daemon", "MPS's control daemon has ended and left its pipes"},
    {"mps-user", "MPS's control daemon is another user's"},
    {"mps-visible", "GPUs are named by numbers that MPS's server may count otherwise"},
    {"mps-limit", "MPS's variable limits a GPU that the program doesn't see"},
    {"preload-missing", "LD_PRELOAD names a file that is not there"},
    {"preload-interposer", "another library that stands before the driver is preloaded"},
    {"preload-interposer", "a library that hands out handles of its own is preloaded before cuslice"},
    {"preload-cuslice", "another cuslice is preloaded"},
    {"program-missing", "the program is not there"},
    {"program-reach", "the program is linked statically"},
    {"program-reach", "the program is set-user-ID"},
    {"program-reach", "the program has another loader than the GNU C library's"},
    {"program-reach", "the program is of another architecture"},
    {"program-runtime", "the program carries the static CUDA runtime, and GPUs are split"},
    {"program-runtime", "the program's static runtime can't be led elsewhere, as the program is stripped"},
    {"program-script", "the program is a script that sets LD_PRELOAD"},
    {"program-namespace", "the program opens the driver in a namespace of the loader of its own"},
};

}  // namespace cuslice::tests
