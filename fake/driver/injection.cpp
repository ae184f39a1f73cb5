// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/injection.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "fake/driver/gate.h"
#include "fake/duration.h"
#include "fake/items.h"

namespace cuslice::fake {
namespace {

constexpr const char* kForm =
    "; an item is FUNCTION:N=CUresult (N: 3, 3+ or *), lost:DEVICE@CALLS, delay:FUNCTION=50us or meet:FUNCTION=2, "
    "items "
    "are separated by commas";

bool whole_number(const std::string& text, uint64_t& number) {
    if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
        return false;
    number = std::stoull(text);
    return true;
}

bool skip(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix))
        return false;
    text.remove_prefix(prefix.size());
    return true;
}

// "cuMemcpyHtoD_v2_ptds" is a version of cuMemcpyHtoD_v2 and of cuMemcpyHtoD.
bool is_version_of(std::string_view symbol, std::string_view name) {
    if (!skip(symbol, name))
        return false;
    if (skip(symbol, "_v")) {
        const size_t digits = std::min(symbol.find_first_not_of("0123456789"), symbol.size());
        if (digits == 0)
            return false;
        symbol.remove_prefix(digits);
    }
    return symbol.empty() || symbol == "_ptds" || symbol == "_ptsz";
}

// One that was replaced stays: a thread may be in it.
std::atomic<Injection*>& current_injection() {
    static std::atomic<Injection*> current{new Injection};
    return current;
}

constinit std::atomic<bool> changed{false};

}  // namespace

Injection& injection() { return *current_injection().load(std::memory_order_acquire); }

const char* change_injection(const char* items, Injection::IsFunction is_function) {
    static std::string error;
    const bool clears = *items == '\0';
    auto next = clears ? std::make_unique<Injection>() : std::make_unique<Injection>(injection());
    if (!clears && !next->parse(items, is_function, error))
        return error.c_str();
    changed = true;
    const bool empty = next->empty();
    static auto& replaced = *new std::vector<Injection*>;
    replaced.push_back(current_injection().exchange(next.release(), std::memory_order_acq_rel));
    if (empty)
        gate.fetch_and(~unsigned{kGateInjection});
    else
        gate.fetch_or(kGateInjection);
    return nullptr;
}

bool injection_changed() { return changed; }

Injection::Injection(const Injection& other)
    : failures_(other.failures_),
      delays_(other.delays_),
      losses_(other.losses_),
      meetings_(other.meetings_),
      calls_(other.calls_.load(std::memory_order_relaxed)) {}

bool Injection::parse(const std::string& text, IsFunction is_function, std::string& error) {
    for (const std::string& item : items_of(text)) {
        if (!parse_item(item, is_function, error)) {
            error = "CUSLICE_FAKE_INJECT: '" + item + "': " + error + kForm;
            return false;
        }
    }
    return true;
}

bool Injection::parse_item(const std::string& item, IsFunction is_function, std::string& error) {
    const auto colon = item.find(':');
    const std::string head = item.substr(0, colon), rest = colon == std::string::npos ? "" : item.substr(colon + 1);
    uint64_t number = 0;
    if (head == "lost") {
        const auto at = rest.find('@');
        uint64_t device = 0;
        if (at == std::string::npos || !whole_number(rest.substr(0, at), device) || device > 63 ||
            !whole_number(rest.substr(at + 1), number)) {
            error = "lost needs a device and a number of calls, as in lost:1@100";
            return false;
        }
        losses_.push_back({static_cast<int>(device), number, std::make_shared<std::atomic<bool>>(false),
                           std::make_shared<InjectionMark>(item)});
        return true;
    }
    const auto equals = rest.find('=');
    const std::string value = equals == std::string::npos ? "" : rest.substr(equals + 1);
    if (head == "delay") {
        const std::string name = rest.substr(0, equals);
        if (name != "*" && !is_function(name)) {
            error = "the driver has no function '" + name + "'";
        } else if (!parse_duration(value, number)) {
            error = "'" + value + "' is not a time, such as 50us (ns, us, ms, s; at most an hour)";
        } else {
            delays_.push_back({name, number, std::make_shared<InjectionMark>(item)});
        }
        return error.empty();
    }
    if (head == "meet") {
        auto meeting = std::make_shared<Meeting>();
        meeting->name = rest.substr(0, equals);
        if (!is_function(meeting->name)) {
            error = "the driver has no function '" + meeting->name + "'";
        } else if (!whole_number(value, meeting->size) || meeting->size < 2 || meeting->size > 1000) {
            error = "'" + value + "' is no number of threads, 2 to 1000";
        } else {
            meetings_.push_back(std::move(meeting));
        }
        return error.empty();
    }
    if (!is_function(head)) {
        error = "the driver has no function '" + head + "' (cuMemAlloc, or cuMemAlloc_v2 for one version)";
        return false;
    }
    std::string which = rest.substr(0, equals);
    uint64_t first = 1, last = ~0ULL;
    if (which != "*") {
        const bool onwards = !which.empty() && which.back() == '+';
        if (onwards)
            which.pop_back();
        if (!whole_number(which, first) || first == 0) {
            error = "'" + rest.substr(0, equals) + "' says no call";
            return false;
        }
        if (!onwards)
            last = first;
    }
    if (!whole_number(value, number) || number == 0 || number > 999) {
        error = "'" + value + "' is no CUresult (1 to 999)";
        return false;
    }
    failures_.push_back({head, first, last, static_cast<CUresult>(number), std::make_shared<std::atomic<uint64_t>>(0),
                         std::make_shared<InjectionMark>(item)});
    return true;
}

CUresult Injection::call(const char* name) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    for (const Delay& delay : delays_) {
        if (delay.name != "*" && !is_version_of(name, delay.name))
            continue;
        delay.mark->note();
        pause_for(delay.nanoseconds);
    }
    CUresult result = CUDA_SUCCESS;
    for (const auto& meeting : meetings_) {
        if (is_version_of(name, meeting->name) && result == CUDA_SUCCESS)
            result = meeting->wait();
    }
    for (Failure& failure : failures_) {
        if (!is_version_of(name, failure.name))
            continue;
        const uint64_t call = failure.calls->fetch_add(1, std::memory_order_relaxed) + 1;
        if (call < failure.first || call > failure.last)
            continue;
        failure.mark->note();
        if (result == CUDA_SUCCESS)
            result = failure.error;
    }
    return result;
}

CUresult Injection::Meeting::wait() {
    std::unique_lock hold(mutex);
    if (++inside == size) {
        inside = 0;
        rounds++;
        complete.notify_all();
        return CUDA_SUCCESS;
    }
    const uint64_t round = rounds;
    complete.wait_for(hold, std::chrono::seconds(kPatience), [&] { return rounds != round || given_up; });
    if (rounds != round)
        return CUDA_SUCCESS;
    inside--;
    given_up = true;
    complete.notify_all();
    return CUDA_ERROR_TIMEOUT;
}

bool Injection::device_lost(int& ordinal) {
    const uint64_t calls = calls_.load(std::memory_order_relaxed);
    for (Loss& loss : losses_) {
        if (calls > loss.after && !loss.told->exchange(true)) {
            ordinal = loss.ordinal;
            loss.mark->note();
            return true;
        }
    }
    return false;
}

}  // namespace cuslice::fake
