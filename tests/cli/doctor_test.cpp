// SPDX-License-Identifier: Apache-2.0
// cuslice doctor: each of the faults that were listed beforehand (doctor_faults.h) is seeded, and named.
#include "tests/allowed.h"
#include "tests/cli/doctor_faults.h"
#include "tests/cli/doctor_scene.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

// The tests of the command, one after the other.
std::string sources() {
    const std::string folder = CUSLICE_TEST_DOCTOR_SOURCES;
    std::string text;
    for (const char* file : {"doctor_test.cpp", "doctor_mps_test.cpp", "doctor_preload_test.cpp"})
        text += read_text(folder + "/" + file);
    return text;
}

}  // namespace

TEST_CASE("every fault that was listed is seeded by a case") {
    const std::string source = sources();
    for (const Fault& fault : kFaults) {
        INFO(fault.seeded);
        const size_t at = source.find(std::string("\"doctor finds: ") + fault.seeded + "\"");
        REQUIRE(at != source.npos);
        const std::string body = source.substr(at, source.find("TEST_CASE", at) - at);
        CHECK(contains(body, std::string("(\"") + fault.name + "\")"));
    }
}

TEST_CASE("doctor finds: a library of the installation is missing") {
    Scene scene;
    scene.driver();
    fs::remove(scene.install() + "/libcuslice-cudart13.so");
    CHECK(scene.found() == problem("installation-file"));
    CHECK(contains(scene.texts(), "libcuslice-cudart13.so"));
    fs::remove(scene.install("other") + "/libcuslice.so");
    CHECK(scene.found() == problem("installation-file"));
}

TEST_CASE("doctor finds: the installation lies in a folder with a space in its name") {
    Scene scene;
    scene.driver();
    scene.install("my programs");
    CHECK(scene.found() == problem("installation-path"));
}

TEST_CASE("doctor finds: libcuslice.so is damaged, and ld.so refuses to preload it") {
    Scene scene;
    scene.driver();
    const std::string library = scene.install() + "/libcuslice.so";
    fs::resize_file(library, 64);
    CHECK(scene.found() == problem("library-preload"));
    CHECK(contains(scene.texts(), "cannot be preloaded"));  // ld.so's own words
}

TEST_CASE("doctor finds: /proc is not mounted") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip("a sanitizer's runtime reads /proc first");
#else
    Scene scene;
    if (!scene.after("mount -t tmpfs none /proc"))
        return;
    CHECK(scene.found() == problem("proc"));
#endif
}

TEST_CASE("doctor finds: a file of settings has a wrong value") {
    Scene scene;
    scene.folder().write("cuslice.toml", "[memory]\nlimit = \"4x\"\n");
    CHECK(scene.found() == problem("settings"));
    CHECK(contains(scene.texts(), "cuslice.toml:2:1: memory.limit: 4x"));
}

TEST_CASE("doctor finds: a file of settings can't be read") {
    Scene scene;
    scene.driver();
    scene.install();
    scene.folder().write("home/.config/cuslice/cuslice.toml", "", 0);
    if (!scene.as_stranger())
        return;
    CHECK(scene.found() == problem("settings"));
    CHECK(contains(scene.texts(), "permission denied"));
    // In a folder that is somebody else's it counts as missing.
    REQUIRE(::chmod((scene.folder().path() + "/home").c_str(), 0) == 0);
    CHECK(scene.found() == warning("settings"));
    REQUIRE(::chmod((scene.folder().path() + "/home").c_str(), 0755) == 0);
}

TEST_CASE("doctor finds: a variable CUSLICE_... is misspelt") {
    Scene scene;
    scene.set("CUSLICE_LIMT=4GiB");
    CHECK(scene.found() == problem("settings"));
    CHECK(contains(scene.texts(), "did you mean CUSLICE_LIMIT"));
}

TEST_CASE("doctor finds: a limit is for a GPU that is not there") {
    Scene scene;
    CHECK(scene.found({"--limit=1=1GiB"}) == problem("gpus"));
}

TEST_CASE("doctor finds: a variable of HAMi or MPS asks for what cuslice does not do") {
    Scene scene;
    scene.set("CUDA_TASK_PRIORITY=1");
    CHECK(scene.found() == warning("unserved-variable"));
}

TEST_CASE("doctor finds: a limit of multiprocessors without the MPS server that would heed it") {
    Scene scene;
    scene.set("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50");
    CHECK(scene.found() == warning("unserved-variable"));
    CHECK(contains(scene.texts(), "--share gives a part of the GPU's time"));
}

TEST_CASE("doctor finds: there is no driver") {
    Scene scene;
    if (!scene.no_driver())
        return;
    CHECK(scene.found() == problem("driver-missing"));
}

TEST_CASE("doctor finds: LD_LIBRARY_PATH leads to the toolkit's stub of the driver") {
    Scene scene;
    scene.driver("cuda/lib64/stubs");
    scene.set("STUB_CUINIT=34");
    CHECK(scene.found() == problem("driver-stub"));
}

TEST_CASE("doctor finds: the driver starts without a device") {
    Scene scene;
    scene.driver();
    scene.set("STUB_CUINIT=100");
    CHECK(scene.found() == problem("driver-start"));
    CHECK(contains(scene.texts(), "CUDA_ERROR_NO_DEVICE"));
}

TEST_CASE("doctor finds: there is a driver, and no NVML") {
    Scene scene;
    if (!scene.no_driver())
        return;
    scene.driver("driver", false);
    CHECK(scene.found() == warning("nvml-missing"));
}

TEST_CASE("doctor finds: NVML does not answer", "[slow]") {
    Scene scene;
    scene.driver();
    scene.set("STUB_NVML_HANGS=1");
    CHECK(scene.found() == problem("nvml-hangs"));
}

TEST_CASE("doctor finds: NVML is of another version than the kernel's driver") {
    Scene scene;
    scene.driver();
    scene.machine("/proc/driver/nvidia/version",
                  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n");
    scene.set("STUB_NVML=18");
    scene.set("STUB_CUINIT=803");
    CHECK(scene.found() == problem("nvml-version"));
    CHECK(contains(scene.texts(), "535.104.05"));
}

TEST_CASE("doctor names what a driver and NVML say for themselves, with what to do about it") {
    const auto found = [](const Words& variables, const std::string& advice) {
        Scene scene;
        scene.driver();
        for (const std::string& variable : variables)
            scene.set(variable);
        const Words names = scene.found();
        INFO(scene.texts());
        CHECK(contains(scene.texts(), advice));
        return names;
    };
    CHECK(found({"STUB_NVML=999"}, "NVML says: Unknown Error") == warning("nvml-start"));
    CHECK(found({"STUB_CUINIT=803"}, "Restart the machine") == problem("driver-start"));
    CHECK(found({"STUB_CUINIT=999"}, "nvidia-smi lists the GPUs") == problem("driver-start"));
    Scene scene;
    scene.driver();
    fs::copy_file(CUSLICE_TEST_HARMLESS, scene.folder().path() + "/driver/libcuda.so.1",
                  fs::copy_options::overwrite_existing);
    CHECK(scene.found() == problem("driver-start"));
    CHECK(contains(scene.texts(), "Install a driver of version 450 or newer"));
}

TEST_CASE("doctor finds: CUDA_VISIBLE_DEVICES hides every GPU") {
    for (const bool real : {false, true}) {
        Scene scene;
        if (real)
            scene.driver();
        scene.set("CUDA_VISIBLE_DEVICES=-1");
        CHECK(scene.found() == problem("gpus-hidden"));
    }
}

TEST_CASE("doctor finds: the sharing folder is not there and can't be made") {
    Scene scene;
    scene.share_in("/nowhere/cuslice");
    CHECK(scene.found() == problem("folder-missing"));
    // Where it can be made, that is left to the first program.
    const std::string made = scene.folder().path() + "/later";
    scene.share_in(made);
    CHECK(scene.found().empty());
    CHECK_FALSE(fs::exists(made));
}

TEST_CASE("doctor finds: the sharing folder is a file") {
    Scene scene;
    scene.share_in(scene.folder().write("file", ""));
    CHECK(scene.found() == problem("folder-kind"));
}

TEST_CASE("doctor finds: everybody may delete what is in the sharing folder") {
    Scene scene;
    REQUIRE(::chmod(scene.sharing().c_str(), 0777) == 0);
    CHECK(scene.found() == problem("folder-sticky"));
}

TEST_CASE("doctor finds: the sharing folder is another user's alone") {
    Scene scene;
    scene.driver();
    scene.install();
    if (!scene.as_stranger())
        return;
    REQUIRE(::chmod(scene.sharing().c_str(), ::geteuid() == 0 ? 0700 : 0) == 0);
    CHECK(scene.found() == warning("folder-rights"));
    REQUIRE(::chmod(scene.sharing().c_str(), 0700) == 0);
}

TEST_CASE("doctor finds: the sharing folder's file system is full") {
    Scene scene;
    if (!scene.after("mount -t tmpfs -o size=64k,mode=1777 none " + scene.sharing()))
        return;
    CHECK(scene.found() == problem("folder-space"));
    if (!scene.after("mount -t tmpfs -o size=4m,mode=1777 none " + scene.sharing()))
        return;
    CHECK(scene.found().empty());
}

TEST_CASE("doctor finds: the sharing folder's file system has no locks") {
    Scene scene;
    scene.set("LD_PRELOAD=" CUSLICE_TEST_DOCTOR_NO_LOCKS);
    CHECK(scene.found() == problem("folder-locks"));
    CHECK(fs::is_empty(scene.sharing()));
}

TEST_CASE("doctor gives up a sharing folder whose file system doesn't answer", "[slow]") {
    Scene scene;
    scene.set("LD_PRELOAD=" CUSLICE_TEST_DOCTOR_NO_LOCKS);
    scene.set("STUB_FILES_HANG=1");
    CHECK(scene.found() == problem("folder-hangs"));
}

TEST_CASE("doctor finds: ulimit -f is too small for a ledger") {
    Scene scene;
    scene.shell("ulimit -f 2000");
    CHECK(scene.found() == warning("file-size"));
    // Nothing is shared, so nothing is missed.
    CHECK(scene.found({"--per-process"}).empty());
}

TEST_CASE("doctor finds: logind empties /dev/shm when the user logs out") {
    Scene scene;
    scene.driver();
    scene.install();
    if (!scene.as_stranger())
        return;
    if (::geteuid() < 1000 && ::geteuid() != 0)
        return skip("a system's user, whose files stay");
    scene.share_in("/dev/shm/cuslice-doctor-test");
    CHECK(scene.found().empty());
    fs::create_directories(scene.root() + "/run/systemd/system");
    CHECK(scene.found() == warning("remove-ipc"));
    scene.machine("/etc/systemd/logind.conf", "[Login]\n#RemoveIPC=no\n");
    CHECK(scene.found() == warning("remove-ipc"));
    scene.machine("/usr/lib/systemd/logind.conf.d/50-site.conf", "[Login]\nRemoveIPC = no\n");
    CHECK(scene.found().empty());
    // A file of the same name, in a folder of higher priority.
    scene.machine("/etc/systemd/logind.conf.d/50-site.conf", "[Login]\nRemoveIPC=yes\n");
    CHECK(scene.found() == warning("remove-ipc"));
    // As Red Hat and its like build it, no file is needed for a no.
    fs::remove_all(scene.root() + "/etc");
    scene.machine("/usr/lib/systemd/logind.conf.d/50-site.conf", "[Login]\nRemoveIPC=\n");
    CHECK(scene.found() == warning("remove-ipc"));
    scene.machine("/etc/os-release", "NAME=Rocky\nID=rocky\nID_LIKE=\"rhel centos fedora\"\n");
    CHECK(scene.found().empty());
    fs::remove_all(scene.root() + "/etc");
    CHECK(scene.found() == warning("remove-ipc"));
    const std::string linger = "/var/lib/systemd/linger/" + std::to_string(kStranger);
    scene.machine(linger, "");
    if (::geteuid() == 0)
        CHECK(scene.found().empty());
    fs::remove(scene.root() + linger);
    scene.share_in(scene.sharing());
    CHECK(scene.found().empty());
}

TEST_CASE("doctor finds: a container has a /dev/shm of its own") {
    Scene scene;
    scene.share_in("/dev/shm/cuslice-doctor-test");
    const std::string shm = "40 36 0:50 / /dev/shm rw - tmpfs shm rw,size=65536k\n";
    scene.machine("/proc/self/mountinfo", "36 1 0:30 / / rw - overlay overlay rw\n" + shm);
    CHECK(scene.found().empty());  // in no container
    scene.machine("/.dockerenv", "");
    CHECK(scene.found() == warning("container-folder"));
    scene.machine("/proc/self/mountinfo", "36 1 0:30 / / rw - overlay overlay rw\n" + shm +
                                              "41 40 0:25 /cuslice /dev/shm/cuslice-doctor-test rw - tmpfs tmpfs rw\n");
    CHECK(scene.found().empty());
}

TEST_CASE("doctor finds: a pid namespace of its own, on a driver before 545") {
    const auto found = [](const std::string& version, const std::string& name) {
        Scene scene;
        scene.driver();
        scene.machine("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX " + version + "  Release Build\n");
        scene.in_namespace(name);
        return scene.found();
    };
    const std::string old_one = "x86_64 Kernel Module  535.104.05", host = "pid:[4026531836]";
    CHECK(found(old_one, "pid:[4026532201]") == warning("pid-namespace"));
    CHECK(found("Open Kernel Module for x86_64  470.82.01", "pid:[4026532201]") == warning("pid-namespace"));
    CHECK(found("Open Kernel Module for x86_64  545.23.06", "pid:[4026532201]").empty());
    CHECK(found(old_one, host).empty());
}

TEST_CASE("doctor finds: the program is not there") {
    Scene scene;
    CHECK(scene.found({"--", "no-such-program"}) == problem("program-missing"));
    CHECK(scene.found({"--", scene.folder().write("data", "text")}) == problem("program-missing"));
}

TEST_CASE("doctor finds: the program is linked statically") {
    Scene scene;
    CHECK(scene.found({"--", CUSLICE_TEST_STATIC}) == problem("program-reach"));
    CHECK(contains(scene.texts(), "without -static"));
}

TEST_CASE("doctor finds: the program is set-user-ID") {
    if (!can_be_other_users())
        return;
    Scene scene;
    const std::string program = scene.folder().path() + "/sudo";
    fs::copy_file("/bin/true", program);
    REQUIRE(::chown(program.c_str(), kStranger, kStranger) == 0);
    REQUIRE(::chmod(program.c_str(), 04755) == 0);
    CHECK(scene.found({"--", program}) == problem("program-reach"));
    CHECK(contains(scene.texts(), "set-user-ID"));
}

TEST_CASE("doctor finds: the program has another loader than the GNU C library's") {
    Scene scene;
    CHECK(scene.found({"--", CUSLICE_TEST_OTHER_LIBC}) == problem("program-reach"));
    CHECK(contains(scene.texts(), "for the GNU C library"));
}

TEST_CASE("doctor finds: the program is of another architecture") {
    Scene scene;
    std::string text = read_text("/bin/true");
    constexpr char kX86 = '\x3e', kAarch64 = '\xb7';
    text[18] = text[18] == kAarch64 ? kX86 : kAarch64;  // e_machine
    CHECK(scene.found({"--", scene.folder().write("other", text, 0755)}) == problem("program-reach"));
}

TEST_CASE("doctor finds: the program carries the static CUDA runtime, and GPUs are split") {
    Scene scene;
    scene.driver();
    CHECK(scene.found({"--split=0=2", "--", CUSLICE_TEST_DEVICE_CODE_STATIC}) == problem("program-runtime"));
    // As JSON writes it.
    CHECK(contains(scene.texts(), R"(relink it with nvcc -cudart shared: NVCC_APPEND_FLAGS=\"-cudart shared\" make)"));
    CHECK(scene.found({"--", CUSLICE_TEST_DEVICE_CODE_STATIC}).empty());
    Scene fake;
    CHECK(fake.found({"--", CUSLICE_TEST_DEVICE_CODE_STATIC}) == problem("program-runtime"));
}

TEST_CASE("doctor finds: the program's static runtime can't be led elsewhere, as the program is stripped") {
    Scene scene;
    const std::string redirect = "--redirect-runtime=program";
    CHECK(scene.found({redirect, "--", CUSLICE_TEST_DEVICE_CODE_STATIC}).empty());
    CHECK(scene.found({redirect, "--", CUSLICE_TEST_DEVICE_CODE_STRIPPED}) == problem("program-runtime"));
    CHECK(contains(scene.texts(), "stripped of its symbol table"));
    CHECK(contains(scene.texts(), R"(relink it with nvcc -cudart shared: NVCC_APPEND_FLAGS=\"-cudart shared\" make)"));
}

TEST_CASE("doctor finds: the program is a script that sets LD_PRELOAD") {
    Scene scene;
    const auto script = [&](const std::string& line) {
        return scene.found({"--", scene.folder().write("start", "#!/bin/sh\n" + line + "\nexec ./a.out\n", 0755)});
    };
    for (const char* line : {"export LD_PRELOAD=/usr/lib/libjemalloc.so", "unset LD_PRELOAD", "exec env -i ./a.out",
                             "LD_PRELOAD= ./a.out", "os.environ[\"LD_PRELOAD\"] = \"\""}) {
        INFO(line);
        CHECK(script(line) == warning("program-script"));
    }
    CHECK(contains(scene.texts(), ":2: "));
    for (const char* line : {"export LD_PRELOAD=$LD_PRELOAD:/usr/lib/libjemalloc.so", "# LD_PRELOAD=/x.so",
                             "echo $LD_PRELOAD", "MY_LD_PRELOAD=/x.so", "test \"$LD_PRELOAD\" = x"}) {
        INFO(line);
        CHECK(script(line).empty());
    }
}

TEST_CASE("doctor finds: the program opens the driver in a namespace of the loader of its own") {
    Scene scene;
    CHECK(scene.found({"--", CUSLICE_TEST_DOCTOR_NAMESPACE}) == warning("program-namespace"));
}

}  // namespace cuslice::tests
