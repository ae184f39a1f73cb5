#include "virtual_gpu/gpu/virtual_gpu.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "policy/base/cancellation.h"
#include "policy/budget/headroom.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/nvml/own_pid.h"

namespace cuslice {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
// A cache grows in multiples of this: what is left above them can't be had.
constexpr std::uint64_t kCacheStep = 2 * kMiB;

// So many looks in a row find nothing before they become rare.
constexpr unsigned kLooksAtOnce = 16;
constexpr std::uint64_t kUnknown = ~0ull;
// After so many times that nothing was found, one time of these is worth asking the clock, and CUDA.
constexpr unsigned kLong = 256, kTimesAsked = 8, kTimesCompared = 64;
constexpr bool one_of(unsigned times, unsigned vain) { return vain < kLong || vain % times == 0; }

// So many of the process's contexts are counted; a program that has more has its own troubles.
constexpr std::size_t kMaxContexts = 256;

// The most that a first context is believed to take where neither NVML nor a figure from before it is to be had: what
// TensorFlow leaves to the driver and its libraries, by compute capability (its MinSystemMemory).
std::uint64_t first_context_at_most(CUdevice device) {
    int major = 0;
    CUSLICE_REAL(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    return (major <= 6 ? 500 : major == 7 ? 1050 : major == 8 ? 1536 : 1800) * kMiB;
}

// Where the GPU's memory is the host's, every program of the host moves its free memory.
bool free_memory(std::uint64_t* free, std::uint64_t* total) {
    std::size_t free_now = 0, total_now = 0;
    CUdevice device = 0;
    int shared_with_host = 0;
    if (CUSLICE_REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS &&
        CUSLICE_REAL(cuDeviceGetAttribute)(&shared_with_host, CU_DEVICE_ATTRIBUTE_INTEGRATED, device) == CUDA_SUCCESS &&
        shared_with_host)
        return false;
    if (CUSLICE_REAL(cuMemGetInfo_v2)(&free_now, &total_now) != CUDA_SUCCESS) return false;
    *free = free_now;
    *total = total_now;
    return true;
}

std::int64_t milliseconds_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

constinit std::atomic<bool> VirtualGpu::some_watches_{false}, VirtualGpu::some_shares_{false};

void VirtualGpu::open(int ordinal, const GpuIdentity& identity, PhysicalGpu& physical, const char* name,
                      const Slice& slice) {
    ordinal_ = ordinal;
    pools_.open(ordinal);
    identity_ = identity;
    physical_ = &physical;
    slice_ = slice;
    slice_.limit = std::min(slice.limit, physical.total());
    std::snprintf(name_, sizeof(name_), "%s", name);
    physical.add(*this, budget_, slice_.limit);
    if (limited()) publish();
}

std::uint64_t VirtualGpu::managed() const {
    std::uint64_t bytes = 0;
    for (const VirtualGpu* part : physical_->parts()) bytes += part->managed_.load(std::memory_order_relaxed);
    return bytes;
}

// Not before the first context: a process that only counts GPUs does not pay for NVML.
void VirtualGpu::open_driver_footprint() {
    if (measured()) return;
    NvmlGpu nvml;
    const bool there = gpu_state().start_nvml() && nvml.open(physical_->identity().uuid);
    const unsigned pid = there ? pid_in_nvml(pid_facts()) : 0;
    const std::uint64_t at_most = first_context_at_most(device());
    LockGuard lock(mutex());
    if (measured()) return;
    footprint().open(nvml, pid, free_memory, at_most, slice_.plus_context ? at_most : 0, gpu_state().frees, mutex());
    for (VirtualGpu* part : physical_->parts()) part->measured_.store(true, std::memory_order_release);
}

DriverFootprint::State VirtualGpu::driver_state() const {
    DriverFootprint::State state{managed()};
    state.steps = footprint().step_count();
    CUcontext contexts[kMaxContexts];
    CUdevice devices[kMaxContexts];
    const std::size_t there = std::min(gpu_state().contexts.list(contexts, kMaxContexts, devices), kMaxContexts);
    for (const VirtualGpu* part : physical_->parts())
        for (std::size_t i = 0; i < there; i++) state.contexts += devices[i] == part->device();
    // All partitions of a GPU share one real context.
    if (physical_->is_split()) state.contexts = std::min(state.contexts, 1u);
    return state;
}

DriverFootprint::Budgets VirtualGpu::budgets() {
    DriverFootprint::Budgets all{physical_->shares()};
    all.reread = [](void* self) {
        for (VirtualGpu* part : static_cast<PhysicalGpu*>(self)->parts()) part->pools_.refresh(part->budget_, false);
    };
    all.self = physical_;
    return all;
}

// Bytes that others of the same job or group hold on the whole GPU, according to the ledger.
std::uint64_t VirtualGpu::used_by_others() {
    ledger::Watched all;
    GpuSharing& sharing = physical_->is_split() ? physical_->sharing() : sharing_;
    if (footprint().exact() || !sharing.watch(gpu_state().sharing, physical_->identity().uuid, &all)) return 0;
    const std::uint64_t own = sharing.joined() ? physical_->charged() : 0;
    return all.used - std::min(all.used, own);
}

void VirtualGpu::meet_context() {
    open_driver_footprint();
    DriverFootprint::State state = driver_state();
    state.contexts = std::max(state.contexts, 1u);
    state.of_others = used_by_others();
    footprint().meet(state, budgets());
    const LockGuard lock(mutex());
    publish_parts();
}

std::uint64_t VirtualGpu::headroom() const {
    if (slice_.own_headroom) return slice_.headroom;
    return slice_.plus_context ? 0 : derived_headroom(driver_footprint());
}

std::uint64_t VirtualGpu::headroom(LimitOf of) const {
    const bool of_all = of == LimitOf::whole_gpu || of == LimitOf::group || of == LimitOf::rule;
    return of_all ? headroom_of_all() : headroom();
}

std::uint64_t VirtualGpu::headroom_of_all() const {
    const Slice& slice = physical_->is_split() ? physical_->slice() : slice_;
    if (slice.own_headroom) return slice.headroom;
    return slice.plus_context ? 0 : derived_headroom(footprint().bytes());
}

// The measured footprint is that of all partitions together: publishes each one's share.
void VirtualGpu::publish_parts() {
    const std::uint64_t bytes = footprint().measured();
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < physical_->parts().size(); i++) {
        const std::uint64_t end = physical_->shares()[i].up_to(bytes);
        __atomic_store_n(&physical_->parts()[i]->driver_bytes_, end - begin, __ATOMIC_RELAXED);
        physical_->parts()[i]->publish();
        begin = end;
    }
    physical_->sharing().budget().set_margin(headroom_of_all());
}

// Makes what was measured take effect: the ceiling for reservations, and when to measure next.
void VirtualGpu::publish() {
    const std::uint64_t room = headroom();
    // A shared limit may be changed by others at any time, and is looked at there.
    sharing_.budget().set_margin(room);
    const std::uint64_t most = sharing_.joined() ? alone() : slice_.limit;
    budget_.set_ceiling(most == Budget::kUnlimited ? most : most > room ? most - room : 0);
    const std::uint64_t unseen = slice_.plus_context ? derived_headroom(driver_footprint()) : room;
    const std::uint64_t used = budget_.used();
    note_use(used);
    look_after_.store(unseen, std::memory_order_relaxed);
    look_above_.store(used + unseen, std::memory_order_relaxed);
}

// More is in use than at the last look, or less was meanwhile.
[[gnu::cold, gnu::noinline]] void VirtualGpu::look_now_or_sooner(std::uint64_t used, std::uint64_t bytes) {
    note_use(used + std::min(bytes, physical_->total()));
    const std::uint64_t above = look_above_.load(std::memory_order_relaxed);
    const std::uint64_t lowest = used + look_after_.load(std::memory_order_relaxed);
    const auto reached = [&](std::uint64_t mark) { return used > mark || bytes > mark - used; };
    if (!reached(std::min(above, lowest))) return look_above_.store(lowest, std::memory_order_relaxed);
    if (!reached(above) && (!due() || !worth_looking(bytes))) return;
    look();
    // These bytes have been looked at.
    look_above_.fetch_add(std::min(bytes, physical_->total()), std::memory_order_relaxed);
}

// To ask whether a look is worth while costs something, too. A program that has been doing the same for long, so that
// nothing was found hundreds of times in a row, has the clock asked every eighth time, and CUDA every 64th.
bool VirtualGpu::due() {
    const unsigned vain = vain_times_.load(std::memory_order_relaxed) + 1;
    vain_times_.store(vain, std::memory_order_relaxed);
    return one_of(kTimesAsked, vain);
}

// Bytes in use on the GPU according to CUDA, less those charged here: memory that others hold, or that wasn't seen.
// Cheap beside NVML. kUnknown if CUDA can't tell.
std::uint64_t VirtualGpu::unseen() const {
    std::uint64_t free = 0, total = 0;
    return free_memory(&free, &total) ? total - free - physical_->held() : kUnknown;
}

// Then one question in a tick of the coarse clock (1 to 10 ms) is enough: a request of so many bytes leaves what is set
// aside for the driver twice, once for what it may have taken in that tick, and once more that is looked at before it
// is granted.
bool VirtualGpu::far_from_limit(std::uint64_t bytes) const {
    const std::uint64_t left = room();
    return bytes <= left && left - bytes >= look_after_.load(std::memory_order_relaxed);
}

// A program that takes and gives back the same memory all the time, and takes nothing else, need not pay for a look
// each time: after a few that found nothing they come in intervals, or when more is in use than at the last one. Where
// CUDA's own figure can't tell that, the intervals are short.
bool VirtualGpu::worth_looking(std::uint64_t bytes) {
    constexpr unsigned kBusyGpu = 1024;
    constexpr std::int64_t kInterval = 1000, kShortInterval = 100;  // milliseconds
    const std::int64_t now = milliseconds_now();
    if (far_from_limit(bytes) && asked_at_.load(std::memory_order_relaxed) == now) return false;
    asked_at_.store(now, std::memory_order_relaxed);
    const unsigned vain = vain_looks_.load(std::memory_order_relaxed);
    if (vain < kLooksAtOnce) return true;
    const std::uint64_t last = unseen_.load(std::memory_order_relaxed);
    const bool compares = last != kUnknown && vain < kBusyGpu;
    const std::int64_t since = now - looked_at_.load(std::memory_order_relaxed);
    if (since >= (compares ? kInterval : kShortInterval)) return true;
    return compares && one_of(kTimesCompared, vain_times_.load(std::memory_order_relaxed)) && unseen() != last;
}

void VirtualGpu::look() {
    const std::uint64_t before = driver_footprint();
    refresh();
    looked_at_.store(milliseconds_now(), std::memory_order_relaxed);
    unseen_.store(unseen(), std::memory_order_relaxed);
    const bool vain = driver_footprint() == before;
    vain_looks_.store(vain ? vain_looks_.load(std::memory_order_relaxed) + 1 : 0, std::memory_order_relaxed);
    if (!vain) vain_times_.store(0, std::memory_order_relaxed);
}

void VirtualGpu::refresh(bool trim_pools) {
    const bool stale = stale_.exchange(false, std::memory_order_relaxed);
    pools_.refresh(budget_, trim_pools);  // first: the driver's footprint is what is left after everything else
    // A stale footprint stays so if something was in flight, such as the operation that asks.
    const bool compared = !measured() || footprint().refresh(driver_state(), budgets());
    // And what others keep may go at any time.
    if ((!compared && stale) || footprint().unlisted().any()) stale_.store(true, std::memory_order_relaxed);
    LockGuard lock(mutex());
    publish_parts();
}

void VirtualGpu::refresh_if_stale() {
    if (!stale_.load(std::memory_order_relaxed)) return;
    const DisableCancellation locked;
    refresh();
}

void VirtualGpu::look_at_cached() {
    if (!measured()) return;
    const bool looks = due();
    if (!looks && !sharing_.joined() && within_limit(nullptr)) return;
    if (giving_back_.exchange(true, std::memory_order_acquire)) return;
    const DisableCancellation locked;
    if (looks && worth_looking(0)) look();
    if (LimitError over; !within_limit_of_living(&over)) gpu_state().reclaimer->trim(*this, over.used - over.ceiling);
    tell_siblings();
    giving_back_.store(false, std::memory_order_release);
}

// Checks bytes that have just been charged to a partition against the limit of the whole GPU. Charging comes first,
// so that two partitions at once can both be refused, and never both be served.
bool VirtualGpu::fits_in_whole(std::uint64_t bytes, LimitError* why) {
    const std::uint64_t used = physical_->counted_of_all();
    if (used + headroom_of_all() <= physical_->limit_of_all()) return true;
    budget_.roll_back(bytes);
    if (why) {
        const std::uint64_t room = headroom_of_all(), most = physical_->limit_of_all();
        *why = {.requested = bytes,
                .used = used - Budget::charged(bytes),
                .ceiling = most > room ? most - room : 0,
                .limit = most,
                .of = LimitOf::whole_gpu};
    }
    return false;
}

[[gnu::cold, gnu::noinline]] void VirtualGpu::follow_file_now() {
    const DisableCancellation locked;
    take_back_dead();
}

// A reservation has been refused once.
bool VirtualGpu::charge_after_looking(std::uint64_t bytes, LimitError* why) {
    gpu_state().look_for_ended(*this);
    refresh();
    take_back_dead();
    if (charge(bytes)) return true;
    if (pools_.any()) refresh(true);
    return charge(bytes, why);
}

// A process may take memory before its first context, and then make that where no hook is: so it is looked for until
// there is one.
[[gnu::cold, gnu::noinline]] bool VirtualGpu::enter_now(std::uint64_t bytes, LimitError* why, CacheOfUnseen cache) {
    const DisableCancellation locked;
    if (!is_member_.load(std::memory_order_acquire)) {
        const Scratch<Refusal> refusal;
        if (!refusal || !join(gpu_state().sharing, &*refusal)) {
            if (why) *why = {.requested = bytes, .no_place = true};
            return false;
        }
    }
    if (gpu_state().charge_unseen(*this, cache)) entered_.store(true, std::memory_order_release);
    return true;
}

bool VirtualGpu::join(const SharingPlan& plan, Refusal* refusal) {
    refusal->how = ledger::Joined::yes;
    if (is_member_.load(std::memory_order_acquire)) return true;
    if (!slice_.can_be_shared() || !plan.any()) {
        is_member_.store(true, std::memory_order_release);
        return true;
    }
    gpu_state().start_nvml();
    if (physical_->is_split() && !physical_->join(plan, refusal)) return false;
    // All partitions will be charged for memory that the driver takes, so all of them join.
    for (VirtualGpu* part : physical_->parts())
        if (!part->join_alone(plan, refusal)) return false;
    for (VirtualGpu* part : physical_->parts()) part->is_member_.store(true, std::memory_order_release);
    return true;
}

// It has entered once all parts have joined: where one is refused, each of them asks again for all.
bool VirtualGpu::join_alone(const SharingPlan& plan, Refusal* refusal) {
    const bool is_part = physical_->is_split();
    // The whole GPU's accounts cover its partitions' memory in use, group and rule: a partition leaves these out.
    const auto in_use = [](void* self) {
        const PhysicalGpu& physical = *static_cast<PhysicalGpu*>(self);
        return physical.is_split() ? 0 : physical.used_by_all();
    };
    SharingPlan own = plan;
    if (is_part) own.group.clear(), own.rule.clear();
    GpuSharing::Slice shared{identity_.uuid,    physical_->total(),  slice_.job_limit,      slice_.group_limit,
                             slice_.rule_limit, slice_.outer_limits, slice_.ceiling_for_all};
    if (is_part) shared.outer_limits = {};
    SharedBudget* outer = is_part ? &physical_->sharing().budget() : nullptr;
    if (!sharing_.join(own, shared, outer, in_use, physical_, refusal)) return false;
    if (caches() && sharing_.joined()) sharing_.budget().caches(0);
    // The driver's footprint may have been charged already, and changes only under this lock.
    LockGuard lock(mutex());
    if (std::exchange(in_accounts_, true)) return true;
    if (sharing_.joined()) {
        budget_.share(sharing_.budget());
        some_shares_.store(true, std::memory_order_relaxed);
    }
    const bool has_job = own.job_count != 0 || slice_.job_limit == ledger::kNoLimitBytes;
    process_limit_.store(has_job ? Budget::kUnlimited : slice_.job_limit, std::memory_order_relaxed);
    publish_parts();
    return true;
}

[[gnu::cold, gnu::noinline]] bool VirtualGpu::reserve_what_shrank(std::uint64_t bytes, LimitError* why) {
    if (charge_after_looking(bytes, why)) return true;
    if (caches() && gpu_state().reclaimer->trim(*this, bytes) && charge(bytes, why)) return true;
    // A pool that is growing has more than it needs for the moment.
    pools_.await_growth();
    return charge(bytes, why) || reserve_given_back(bytes, why) || reserve_of_siblings(bytes, why);
}

// Waits for other processes to give back what they have cached of a limit that they share with this one. They do so
// at their next slow step, or when their own thread looks. A process that does neither is not waited for long, and
// not again soon after as long as nothing has changed there.
bool VirtualGpu::wait_for_siblings(std::uint64_t bytes, bool (*fits)(void*), void* asked) {
    constexpr int kTries = 100;
    constexpr long kPause = 2'000'000;        // nanoseconds
    constexpr std::int64_t kNotAgain = 1000;  // milliseconds
    std::uint64_t state = 0;
    if (!sharing_.joined()) return false;
    // One may have given back since the last charge was refused, and then there is nobody left to ask.
    if (!sharing_.budget().want(Budget::charged(bytes), &state)) return fits(asked);
    wanted_seen_.store(sharing_.budget().wanted(), std::memory_order_relaxed);
    const bool in_vain = siblings_.load(std::memory_order_relaxed) == state;
    if (in_vain && milliseconds_now() < no_wait_until_.load(std::memory_order_relaxed)) return false;
    for (int i = 0; i < kTries; i++) {
        timespec pause{0, kPause};
        nanosleep(&pause, nullptr);
        if (fits(asked)) return true;
    }
    sharing_.budget().want(Budget::charged(bytes), &state);
    siblings_.store(state, std::memory_order_relaxed);
    no_wait_until_.store(milliseconds_now() + kNotAgain, std::memory_order_relaxed);
    return false;
}

bool VirtualGpu::asked_to_trim() {
    if (!sharing_.joined()) return false;
    follow_file();
    const std::uint32_t now = sharing_.budget().wanted();
    return wanted_seen_.load(std::memory_order_relaxed) != now && wanted_seen_.exchange(now) != now;
}

void VirtualGpu::tell_siblings() {
    if (sharing_.joined()) sharing_.budget().caches(gpu_state().reclaimer->unused(*this));
}

bool VirtualGpu::reserve_segment(std::uint64_t bytes, const ContextCache& cache, LimitError* why) {
    if (!ready_for(bytes, why, CacheOfUnseen::left)) return false;
    if (charge(bytes) || charge_after_looking(bytes, why)) return true;
    if (gpu_state().reclaimer->trim(*this, bytes, &cache) && charge(bytes, why)) return true;
    return reserve_given_back(bytes, why) || reserve_of_siblings(bytes, why);
}

std::uint64_t VirtualGpu::limit_to_come() {
    if (sharing_.joined() || !slice_.in_group || physical_->is_split()) return limit();
    return std::min(limit(), sharing_.group_limit(gpu_state().sharing, identity_.uuid));
}

// A group may have no limit: then the GPU's end is the only one.
std::uint64_t VirtualGpu::room_in_accounts() const {
    const std::uint64_t used = budget_.used(), total = physical_->total();
    return std::min(sharing_.budget().room(), used < total ? total - used : 0);
}

std::uint64_t VirtualGpu::room() const {
    const std::uint64_t used = budget_.used(), ceiling = budget_.ceiling();
    std::uint64_t own = used < ceiling ? ceiling - used : 0;
    if (sharing_.joined()) own = std::min(own, room_in_accounts());
    if (!physical_->limit_of_all()) return own;
    const std::uint64_t all = physical_->counted_of_all() + headroom_of_all(), whole = physical_->limit_of_all();
    return std::min(own, all < whole ? whole - all : 0);
}

std::uint64_t VirtualGpu::room_after(std::uint64_t given_back) const {
    const auto left = [given_back](std::uint64_t most, std::uint64_t used) {
        const std::uint64_t now = used - std::min(used, given_back);
        return most - std::min(most, now);
    };
    std::uint64_t room = left(budget_.ceiling(), budget_.used());
    if (sharing_.joined())
        room = std::min({room, sharing_.budget().room_after(given_back), left(physical_->total(), budget_.used())});
    if (!physical_->limit_of_all()) return room;
    const std::uint64_t margin = headroom_of_all(), whole = physical_->limit_of_all();
    return std::min(room, left(whole - std::min(whole, margin), physical_->counted_of_all()));
}

void VirtualGpu::release_later(std::uint64_t bytes) {
    LockGuard lock(mutex());
    if (!footprint().take_over(bytes, budget_, budgets())) return budget_.release(bytes);
    publish_parts();
    driver_gave_back();
}

void VirtualGpu::release_shared(std::uint64_t bytes) {
    LockGuard lock(mutex());
    if (!footprint().take_over(bytes, budget_, budgets())) return;
    publish_parts();
    driver_gave_back();
}

MemoryView VirtualGpu::view(std::uint64_t physical_free) {
    enter(0, nullptr);
    sharing_.take_back_dead_now_and_then();
    physical_->sharing().take_back_dead_now_and_then();
    if (stale_.load(std::memory_order_relaxed)) {
        refresh_if_stale();
    } else if (pools_.any()) {
        const DisableCancellation locked;
        pools_.refresh(budget_, false);
    }
    if (!caches()) return {std::min(room(), physical_free), limit()};
    const DisableCancellation locked;
    // Where the driver has taken some of the headroom, idle memory has to go back before anything is granted.
    const std::uint64_t idle = gpu_state().reclaimer->unused(*this);
    const std::uint64_t free = std::min(room_after(idle), physical_free + idle);
    const std::uint64_t kept = free < idle ? 0 : idle;  // else it is all taken anew
    return {kept + (free - kept) / kCacheStep * kCacheStep, limit()};
}

}  // namespace cuslice
