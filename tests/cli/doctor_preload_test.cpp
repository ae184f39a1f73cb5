// SPDX-License-Identifier: Apache-2.0
// cuslice doctor: what else is preloaded.
#include "tests/cli/doctor_scene.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("doctor finds: LD_PRELOAD names a file that is not there") {
    Scene scene;
    scene.set("LD_PRELOAD=/nowhere/libother.so");
    CHECK(scene.found() == warning("preload-missing"));
    Scene by_name;
    by_name.set("LD_PRELOAD=libof-no-package.so");
    CHECK(by_name.found() == warning("preload-missing"));
}

TEST_CASE("doctor finds: another library that stands before the driver is preloaded") {
    Scene scene;
    scene.machine("/etc/ld.so.preload", "# HAMi\n/usr/local/vgpu/libvgpu.so\n");
    CHECK(scene.found() == warning("preload-interposer"));
    Scene by_symbol;
    by_symbol.set("LD_PRELOAD=" CUSLICE_TEST_DOCTOR_STUB);
    CHECK(by_symbol.found() == warning("preload-interposer"));
}

TEST_CASE("doctor finds: a library that hands out handles of its own is preloaded before cuslice") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip("a sanitizer's runtime calls dlsym before that library can answer");
#else
    const std::string interposer = CUSLICE_TEST_DOCTOR_INTERPOSER, own = kLibraries + "/libcuslice.so";
    const auto found = [](const std::string& list) {
        Scene scene;
        scene.set("LD_PRELOAD=" + list);
        CHECK(scene.found() == warning("preload-interposer"));
        return scene.texts();
    };
    const std::string first = found(interposer + ":" + own);
    CHECK(contains(first, "LD_PRELOAD loads " + interposer + " before libcuslice.so"));
    CHECK(contains(first, "with dlsym and cuMemAlloc_v2 of its own"));
    CHECK(contains(first, "Put libcuslice.so first into LD_PRELOAD"));
    for (const std::string& list : {own + ":" + interposer, interposer}) {
        const std::string behind = found(list);
        CHECK(contains(behind, "LD_PRELOAD loads " + interposer + ", which stands before the driver"));
        CHECK(contains(behind, "Take it out of LD_PRELOAD"));
    }
    // By its name alone, as ld.so finds it.
    Scene by_name;
    by_name.set("LD_LIBRARY_PATH=" + fs::path(interposer).parent_path().string());
    by_name.set("LD_PRELOAD=" + fs::path(interposer).filename().string() + " " + own);
    CHECK(by_name.found() == warning("preload-interposer"));
    CHECK(contains(by_name.texts(), " before libcuslice.so"));
#endif
}

TEST_CASE("doctor finds: another cuslice is preloaded") {
    Scene scene;
    scene.machine("/etc/ld.so.preload", "/opt/cuslice/lib/cuslice/libcuslice.so\n");
    CHECK(scene.found() == warning("preload-cuslice"));
    // The one that is examined, as for an administrator's machine, or within cuslice run.
    scene.machine("/etc/ld.so.preload", kLibraries + "/libcuslice.so\n");
    CHECK(scene.found().empty());
}

}  // namespace cuslice::tests
