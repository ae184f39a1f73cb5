// SPDX-License-Identifier: Apache-2.0
// cuslice doctor: what becomes of programs beside MPS, of which they say nothing.
#include "tests/cli/doctor_scene.h"

namespace cuslice::tests {

TEST_CASE("doctor finds: the folder of MPS's pipes is misspelt") {
    Scene scene;
    scene.driver();
    scene.set("CUDA_MPS_PIPE_DIRECTORY=/nowhere/nvidia-mpz");
    CHECK(scene.found() == warning("mps-pipe"));
    CHECK_FALSE(contains(scene.texts(), "there is one in"));
    scene.mps("/tmp/nvidia-mps");
    CHECK(scene.found() == warning("mps-pipe"));
    CHECK(contains(scene.texts(), "there is one in /tmp/nvidia-mps"));
    // The fake driver has no MPS.
    Scene fake;
    fake.set("CUDA_MPS_PIPE_DIRECTORY=/nowhere/nvidia-mpz");
    CHECK(fake.found().empty());
}

TEST_CASE("doctor finds: MPS's control daemon has ended and left its pipes") {
    // More than any process's number (the kernel's PID_MAX_LIMIT).
    constexpr const char* kNobody = "4194305\n";
    Scene scene;
    scene.driver();
    scene.mps("/tmp/nvidia-mps");
    scene.machine("/tmp/nvidia-mps/nvidia-cuda-mps-control.pid", kNobody);
    CHECK(scene.found().empty());  // it isn't known in which namespace the number is one
    scene.in_namespace("pid:[4026531836]");
    CHECK(scene.found() == warning("mps-daemon"));
    CHECK(contains(scene.texts(), "(pid 4194305)"));
    scene.machine("/tmp/nvidia-mps/nvidia-cuda-mps-control.pid", std::to_string(::getpid()) + "\n");
    CHECK(scene.found().empty());
    CHECK(contains(scene.texts(), "programs connect to the daemon of MPS in "));
    Scene contained;
    contained.driver();
    contained.in_namespace("pid:[4026532201]");
    contained.mps("/tmp/nvidia-mps");
    contained.machine("/tmp/nvidia-mps/nvidia-cuda-mps-control.pid", kNobody);
    CHECK(contained.found().empty());
}

TEST_CASE("doctor doesn't wait for a pipe in the place of the file that names MPS's daemon") {
    Scene scene;
    scene.driver();
    scene.in_namespace("pid:[4026531836]");
    scene.mps("/tmp/nvidia-mps");
    REQUIRE(::mkfifo((scene.root() + "/tmp/nvidia-mps/nvidia-cuda-mps-control.pid").c_str(), 0666) == 0);
    CHECK(scene.found().empty());
}

TEST_CASE("doctor finds: MPS's control daemon is another user's") {
    if (!can_be_other_users())
        return;
    Scene scene;
    scene.driver();
    const std::string control = scene.mps("/tmp/nvidia-mps");
    REQUIRE(::lchown(control.c_str(), kStranger, kStranger) == 0);
    CHECK(scene.found() == warning("mps-user"));
    CHECK(contains(scene.texts(), std::to_string(kStranger) + "'s: programs connect to it"));
}

TEST_CASE("doctor finds: GPUs are named by numbers that MPS's server may count otherwise") {
    Scene scene;
    scene.driver();
    scene.set("STUB_GPUS=2");
    scene.set("CUDA_VISIBLE_DEVICES=1");
    CHECK(scene.found().empty());  // without MPS
    scene.mps("/tmp/nvidia-mps");
    CHECK(scene.found() == warning("mps-visible"));
    // One GPU has but one order.
    Scene single;
    single.driver();
    single.set("CUDA_VISIBLE_DEVICES=0");
    single.mps("/tmp/nvidia-mps");
    CHECK(single.found().empty());
}

TEST_CASE("doctor finds: MPS's variable limits a GPU that the program doesn't see") {
    Scene scene;
    scene.driver();
    scene.set("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G,3=512M");
    CHECK(scene.found().empty());  // cuslice serves it alone
    scene.mps("/tmp/nvidia-mps");
    CHECK(scene.found() == warning("mps-limit"));
    CHECK(contains(scene.texts(), "names GPU 3"));
}

}  // namespace cuslice::tests
