// SPDX-License-Identifier: Apache-2.0
// A context that is made current for a while, and what the thread's stack is afterwards: also where the driver refuses
// it, and where the context has ended meanwhile.
#include "virtual_gpu/gpu/current_context.h"

#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/sleeping.h"
#include "tests/virtual_gpu/made_up_driver.h"
#include "virtual_gpu/gpu/visit.h"

using namespace cuslice;
using namespace cuslice::tests;
using Of = CurrentContext::Of;
using Stack = std::vector<CUcontext>;

namespace {

/// Two contexts that cuslice knows, of which the first one is current.
struct Scene {
    Scene() {
        driver.make(one);
        driver.make(other);
        MadeUpDriver::stack() = {one};
    }
    static Stack& stack() { return MadeUpDriver::stack(); }
    /// Nobody is in a context, or ends one: another thread's end of it doesn't wait.
    void check_free(CUcontext context) {
        std::thread([&] { const ContextEnd end(context); }).join();
    }

    const CUcontext one = context(1), other = context(2), unknown = context(3);
    MadeUpDriver driver;
};

}  // namespace

TEST_CASE("a context that the driver refuses is not current, nobody is in it, and the stack is as it was") {
    Scene scene;
    scene.driver.say["cuCtxPushCurrent"] = CUDA_ERROR_INVALID_CONTEXT;
    {
        const CurrentContext during(scene.other);
        CHECK_FALSE(during);
        CHECK(scene.stack() == Stack{scene.one});
    }
    CHECK(scene.stack() == Stack{scene.one});
    scene.check_free(scene.other);
}

TEST_CASE("a context that isn't known is not put to the driver where only known ones are wanted") {
    Scene scene;
    {
        const CurrentContext during(scene.unknown);
        CHECK_FALSE(during);
    }
    CHECK(scene.driver.calls == 0);
    {
        const CurrentContext during(scene.unknown, Of::any);
        CHECK(during);
        CHECK(scene.stack() == Stack{scene.one, scene.unknown});
    }
    CHECK(scene.stack() == Stack{scene.one});
    scene.check_free(scene.unknown);
}

TEST_CASE("another context is current for a while, and the thread's own stays as it is") {
    Scene scene;
    {
        const CurrentContext during(scene.other);
        CHECK(during);
        CHECK(scene.stack() == Stack{scene.one, scene.other});
        {
            const CurrentContext within(scene.other);
            CHECK(within);
            CHECK(scene.stack() == Stack{scene.one, scene.other});
        }
    }
    CHECK(scene.stack() == Stack{scene.one});
    {
        const CurrentContext during(scene.one);
        CHECK(during);
        CHECK(scene.stack() == Stack{scene.one});
    }
    CHECK(scene.driver.calls_of("cuCtxPushCurrent") == 1);
}

TEST_CASE("a thread without a context has none afterwards") {
    Scene scene;
    scene.stack().clear();
    {
        const CurrentContext during(scene.one);
        CHECK(during);
        CHECK(scene.stack() == Stack{scene.one});
    }
    CHECK(scene.stack().empty());
    const CurrentContext none(nullptr);
    CHECK_FALSE(none);
}

TEST_CASE("the stack is as it was though the driver doesn't pop a context that has ended") {
    Scene scene;
    scene.driver.put(
        Function::cuCtxPopCurrent_v2, +[](CUcontext*) -> CUresult { return CUDA_ERROR_CONTEXT_IS_DESTROYED; });
    {
        const CurrentContext during(scene.other);
        CHECK(during);
    }
    CHECK(scene.stack() == Stack{scene.one});
}

TEST_CASE("the stack is as it was though the context that was on top has ended meanwhile") {
    Scene scene;
    {
        const CurrentContext during(scene.other);
        REQUIRE(during);
        scene.stack().pop_back();  // where the driver takes off what ends
    }
    CHECK(scene.stack() == Stack{scene.one});
}

TEST_CASE("another thread's end of a context waits until it isn't current here any more, and own ones need no wait") {
    Scene scene;
    std::atomic<pid_t> id{0};
    std::atomic<bool> ended{false};
    std::thread ends;
    const auto end_elsewhere = [&](CUcontext context) {
        id = 0;
        ended = false;
        ends = std::thread([&, context] {
            id = this_thread();
            const ContextEnd end(context);
            ended = true;
        });
        while (!id)
            std::this_thread::yield();
        await_sleep(id);
    };
    SECTION("current") {
        {
            const CurrentContext during(scene.other);
            end_elsewhere(scene.other);
            CHECK_FALSE(ended);
        }
        ends.join();
    }
    SECTION("named") {
        {
            const NamedContext during(scene.other);
            CHECK(during);
            CHECK(during.visiting());
            CHECK(scene.stack() == Stack{scene.one});
            end_elsewhere(scene.other);
            CHECK_FALSE(ended);
        }
        ends.join();
    }
    SECTION("own") {
        const CurrentContext during(scene.one);
        const NamedContext named(scene.one);
        CHECK(named);
        CHECK_FALSE(named.visiting());
        end_elsewhere(scene.one);
        ends.join();
    }
    SECTION("own, and memory is taken in it") {
        {
            const CurrentContext during(scene.one, Of::known, true);
            CHECK(during);
            end_elsewhere(scene.other);
            CHECK_FALSE(ended);
        }
        ends.join();
    }
    CHECK(ended);
}

TEST_CASE("whoever ends a context can't enter it, nor one whose name isn't known") {
    Scene scene;
    {
        const ContextEnd end(scene.other);
        const CurrentContext during(scene.other);
        CHECK_FALSE(during);
        const NamedContext named(scene.other);
        CHECK_FALSE(named);
    }
    const NamedContext named(scene.unknown);
    CHECK_FALSE(named);
    CHECK(scene.driver.calls == 0);
    CHECK(scene.stack() == Stack{scene.one});
}

TEST_CASE("only a context that is current is a thread's own") {
    Scene scene;
    CHECK(is_own(scene.one));
    CHECK_FALSE(is_own(scene.other));
    CHECK_FALSE(is_own(nullptr));
    scene.stack().clear();
    CHECK_FALSE(is_own(nullptr));
    CHECK_FALSE(is_own(scene.one));
}
