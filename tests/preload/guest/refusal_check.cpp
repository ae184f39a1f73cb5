// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/refusal_check.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

// After routes.h: it includes cuda.h with the old versions of functions under their own names.
#include "fake/private_driver.h"

namespace guest {
namespace {

using cuslice::fake::PrivateDriver;
using cuslice::fake::PrivateState;

Driver real;
const PrivateDriver* own = nullptr;
pid_t program = 0;  // 0: nothing is looked at
std::atomic<unsigned> not_alone{0}, captures{0};
bool let_stack = false, let_out = false;
// Read from the environment, so that it survives an exec.
bool let_free = std::getenv("GUEST_LETS_FREE_CHANGE") != nullptr;
std::string changes;

bool looks() { return program != 0 && not_alone == 0 && getpid() == program && gettid() == program; }

// Nothing here has a destructor: some programs leave a call by a longjmp.
struct State {
    CUcontext current = nullptr;
    PrivateState others;
    bool knows_free = false;
    size_t free = 0, total = 0;

    static State now() {
        State state;
        real.cuCtxGetCurrent(&state.current);
        if (own)
            state.others = own->state();
        if (state.current && captures == 0 && !let_free)
            state.knows_free = real.cuMemGetInfo_v2(&state.free, &state.total) == CUDA_SUCCESS;
        return state;
    }
};

void changed(const char* what, unsigned long long before, unsigned long long after) {
    changes += std::string(" ") + what + " " + std::to_string(before) + " -> " + std::to_string(after);
}

unsigned long long number_of(CUcontext context) { return reinterpret_cast<uintptr_t>(context); }

void compare(const char* function, CUresult result, const State& before, bool out_kept) {
    const State after = State::now();
    const size_t length = changes.size();
    changes += std::string(function) + " is refused with " + std::to_string(static_cast<int>(result)) + " and changes";
    const size_t said = changes.size();
    if (!let_stack && after.current != before.current)
        changed("the current context", number_of(before.current), number_of(after.current));
    if (!let_stack && after.others.depth != before.others.depth)
        changed("the stack's depth", before.others.depth, after.others.depth);
    if (!let_stack && after.others.contexts != before.others.contexts)
        changed("the number of contexts", before.others.contexts, after.others.contexts);
    if (before.knows_free && after.knows_free && after.free != before.free)
        changed("free", before.free, after.free);
    if (before.knows_free && after.knows_free && after.total != before.total)
        changed("total", before.total, after.total);
    if (!let_out && !out_kept)
        changes += " where it would have put something";
    if (changes.size() == said)
        changes.resize(length);
    else
        changes += ";";
}

// Where a function puts what it makes or tells, and reads nothing.
template <typename T>
constexpr bool is_out = false;
template <typename T>
constexpr bool is_out<T*> =
    !std::is_const_v<T> &&
    (std::is_same_v<T, CUdeviceptr> || std::is_same_v<T, CUdeviceptr_v1> || std::is_same_v<T, size_t> ||
     std::is_same_v<T, int> || std::is_same_v<T, CUcontext> || std::is_same_v<T, CUgreenCtx> ||
     std::is_same_v<T, CUstream> || std::is_same_v<T, CUevent> || std::is_same_v<T, CUmodule> ||
     std::is_same_v<T, CUfunction> || std::is_same_v<T, CUarray> || std::is_same_v<T, CUmipmappedArray> ||
     std::is_same_v<T, CUmemoryPool> || std::is_same_v<T, CUgraph> || std::is_same_v<T, CUgraphExec> ||
     std::is_same_v<T, CUgraphNode> || std::is_same_v<T, CUexternalMemory> || std::is_same_v<T, CUdevResourceDesc> ||
     std::is_same_v<T, CUipcMemHandle> || std::is_same_v<T, CUipcEventHandle>);

constexpr unsigned char kPoison = 0x5a;

// One argument of a call; the place that it points to is poisoned until the call has come back.
template <typename T>
class Argument {
  public:
    explicit Argument(T) {}
    bool kept() const { return true; }
    void restore() {}
};

template <typename T>
requires is_out<T>
class Argument<T> {
    using Value = std::remove_pointer_t<T>;

  public:
    explicit Argument(T place) : place_(place) {
        std::memset(&poison_, kPoison, sizeof poison_);
        if (!place_)
            return;
        before_ = *place_;
        *place_ = poison_;
    }
    bool kept() const { return !place_ || std::memcmp(place_, &poison_, sizeof poison_) == 0; }
    // Puts the old value back if the call has written nothing.
    void restore() {
        if (place_ && kept())
            *place_ = before_;
    }

  private:
    T place_;
    Value poison_, before_;
};

enum class Name {
#define GUEST_FUNCTION(symbol, name, version) symbol,
#include "tests/preload/guest/functions.def"
    cuMemAllocAsync_ptsz,
    cuMemFreeAsync_ptsz,
};

void came_back(Name name, CUresult result) {
    if (result != CUDA_SUCCESS)
        return;
    if (name == Name::cuStreamBeginCapture_v2)
        captures++;
    if (name == Name::cuStreamEndCapture && captures)
        captures--;
    if (name == Name::cuInit && program == 0) {
        void* found = nullptr;
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
        real.cuGetProcAddress_v2(cuslice::fake::kPrivateDriver, &found, CUDA_VERSION, 0, &status);
        own = static_cast<const PrivateDriver*>(found);
        program = getpid();
    }
}

template <Name name, auto member, typename Function>
struct Looking;

template <Name name, auto member, typename... Arguments>
struct Looking<name, member, CUresult (*)(Arguments...)> {
    static inline const char* symbol = nullptr;

    static CUresult call(Arguments... arguments) {
        if (!looks()) [[unlikely]]
            return plainly(arguments...);
        return looking(std::index_sequence_for<Arguments...>{}, arguments...);
    }

  private:
    static CUresult plainly(Arguments... arguments) {
        const CUresult result = (real.*member)(arguments...);
        if (gettid() == getpid())
            came_back(name, result);
        return result;
    }
    // Apart from the rest, which some threads call that have little stack.
    template <size_t... i>
    [[gnu::noinline]] static CUresult looking(std::index_sequence<i...>, Arguments... arguments) {
        const State before = State::now();
        std::tuple<Argument<Arguments>...> places{Argument<Arguments>(arguments)...};
        const CUresult result = (real.*member)(arguments...);
        // cuStreamEndCapture is documented to write a null graph when the capture was invalidated.
        const bool kept = name == Name::cuStreamEndCapture || (std::get<i>(places).kept() && ... && true);
        (std::get<i>(places).restore(), ...);
        came_back(name, result);
        if (result != CUDA_SUCCESS)
            compare(symbol, result, before, kept);
        return result;
    }
};

template <Name name, auto member>
void put_before(Driver& driver, const char* symbol) {
    using Function = std::remove_reference_t<decltype(driver.*member)>;
    if (!(driver.*member))
        return;
    Looking<name, member, Function>::symbol = symbol;
    driver.*member = Looking<name, member, Function>::call;
}

}  // namespace

void check_refusals(Driver& driver) {
    real = driver;
#define GUEST_FUNCTION(symbol, name, version) put_before<Name::symbol, &Driver::symbol>(driver, #symbol);
#include "tests/preload/guest/functions.def"
    put_before<Name::cuMemAllocAsync_ptsz, &Driver::cuMemAllocAsync_ptsz>(driver, "cuMemAllocAsync_ptsz");
    put_before<Name::cuMemFreeAsync_ptsz, &Driver::cuMemFreeAsync_ptsz>(driver, "cuMemFreeAsync_ptsz");
}

std::string take_changes() { return std::exchange(changes, {}); }

void let_change(const std::string& what) { (what == "stack" ? let_stack : what == "free" ? let_free : let_out) = true; }

void capture_begins() { captures++; }

NotAlone::NotAlone() { not_alone++; }
NotAlone::~NotAlone() { not_alone--; }

}  // namespace guest
