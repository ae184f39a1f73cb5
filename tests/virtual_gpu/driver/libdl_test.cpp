// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/libdl.h"

#include <dlfcn.h>
#include <link.h>

#include <string>

#include "tests/catch.h"

namespace cuslice {

TEST_CASE("what is asked of the C library's functions is answered as it answers") {
    void* const handle = dlopen(CUSLICE_TEST_GNU, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr);
    void* const answer = Libdl::dlsym(handle, "answer");
    REQUIRE(answer != nullptr);
    CHECK(answer == dlsym(handle, "answer"));
    CHECK(Libdl::dlsym(RTLD_DEFAULT, "getpid") == dlsym(RTLD_DEFAULT, "getpid"));
    void* const older = Libdl::dlvsym(handle, "answer", "DECOY_1");
    CHECK(older == dlvsym(handle, "answer", "DECOY_1"));
    CHECK(older != answer);

    Dl_info info{};
    REQUIRE(Libdl::dladdr(answer, &info) != 0);
    CHECK(std::string(info.dli_fname) == CUSLICE_TEST_GNU);
    link_map *of_handle = nullptr, *of_address = nullptr;
    CHECK(Libdl::dlinfo(handle, RTLD_DI_LINKMAP, &of_handle) == 0);
    CHECK(Libdl::dladdr1(answer, &info, reinterpret_cast<void**>(&of_address), RTLD_DL_LINKMAP) != 0);
    CHECK(of_handle != nullptr);
    CHECK(of_address == of_handle);
    CHECK(Libdl::dlclose(handle) == 0);
}

TEST_CASE("the C library's errors come through") {
    static_cast<void>(dlerror());
    CHECK(Libdl::dlsym(RTLD_DEFAULT, "no_function_of_this_name") == nullptr);
    const char* const why = Libdl::dlerror();
    REQUIRE(why != nullptr);
    CHECK(std::string(why).find("no_function_of_this_name") != std::string::npos);
    CHECK(Libdl::dlerror() == nullptr);
}

}  // namespace cuslice
