#include "virtual_gpu/process.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "config/load.h"
#include "config/resolve.h"
#include "policy/uncancelled.h"
#include "virtual_gpu/driver/load.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/toml_module.h"
#include "virtual_gpu/visible_devices.h"

extern char** environ;

namespace cuslice {

namespace {

// Raw storage, as the GPUs' is.
alignas(Settings) unsigned char settings_storage[sizeof(Settings)];

// While a thread loads it may fork: drivers start nvidia-modprobe. It must not wait for itself then.
constinit thread_local bool loading_now = false;

// How many GPUs' locks this thread holds while it forks: another thread may just be opening them.
constinit thread_local int forking_gpus = 0;

class Loading {
  public:
    explicit Loading(Mutex& mutex) : lock_(mutex) { loading_now = true; }
    ~Loading() { loading_now = false; }

  private:
    Uncancelled uncancelled_;
    LockGuard lock_;
};

// A GPU's UUID as nvidia-smi writes it.
void format_uuid(const CUuuid& uuid, char (&text)[48]) {
    const auto* b = reinterpret_cast<const unsigned char*>(uuid.bytes);
    std::snprintf(text, sizeof(text), "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                  b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

// The folder of the driver in use, beside which its NVML lies if it is not the system's.
bool folder_in(const char* path, char* folder, std::size_t size) {
    const char* slash = std::strrchr(path, '/');
    if (!slash || static_cast<std::size_t>(slash - path) >= size) return false;
    std::memcpy(folder, path, static_cast<std::size_t>(slash - path));
    folder[slash - path] = '\0';
    return true;
}

}  // namespace

constinit Process the_process;
alignas(VirtualGpu) unsigned char Process::gpu_storage_[kMostGpus * sizeof(VirtualGpu)];

const Settings& Process::settings() const { return *reinterpret_cast<const Settings*>(settings_storage); }

bool Process::read_settings() {
    auto& settings = *new (settings_storage) Settings;
    if (!load_guest(settings, environ, open_toml_module, kSystemFile, error_)) return false;
    sharing_ = plan_sharing(settings, environ);
    may_cache_ = chooses_cache(settings);
    return true;
}

Readiness Process::load() {
    if (const Readiness known = readiness(); known != Readiness::not_yet) return known;
    Loading loading(mutex_);
    if (const Readiness known = readiness(); known != Readiness::not_yet) return known;
    pthread_atfork(before_fork, after_fork, after_fork_in_child);

    Readiness answer = Readiness::bad_configuration;
    if (read_settings()) {
        char path[4096];
        const char* explicit_path = nullptr;
        if (find(settings(), Key::fake)) {
            // The fake GPU's driver lies in a folder beside this library; `fake` wins over `driver`.
            constexpr const char kFake[] = "/fake/libcuda.so.1";
            if (folder_of(&the_process, path, sizeof(path) - sizeof(kFake))) std::strcat(path, kFake);
            explicit_path = path;
        } else if (const Entry* driver = find(settings(), Key::driver)) {
            std::snprintf(path, sizeof(path), "%.*s", static_cast<int>(driver->value.size()), driver->value.data());
            explicit_path = path;
        }
        answer =
            load_driver(explicit_path, driver_text_, sizeof(driver_text_)) ? Readiness::ready : Readiness::no_driver;
    }
    readiness_.store(answer, std::memory_order_release);
    return answer;
}

bool Process::load_nvml() {
    if (const int known = nvml_.load(std::memory_order_acquire)) return known == 1;
    if (load() == Readiness::bad_configuration) return false;
    Loading loading(mutex_);
    return load_nvml_locked();
}

bool Process::load_nvml_locked() {
    if (const int known = nvml_.load(std::memory_order_acquire)) return known == 1;
    char folder[512], text[512];
    const bool chosen = find(settings(), Key::driver) || find(settings(), Key::fake);
    const bool beside = chosen && folder_in(driver_text_, folder, sizeof(folder));
    const bool loaded = ::cuslice::load_nvml(beside ? folder : nullptr, text, sizeof(text)) && nvml_initialise();
    nvml_.store(loaded ? 1 : 2, std::memory_order_release);
    return loaded;
}

VirtualGpu::Slice Process::slice_of(const GpuIdentity& identity, std::uint64_t total) const {
    VirtualGpu::Slice slice;
    const Amount amount = amount_for(settings(), identity, total);
    slice.limited = amount.limited;
    slice.limit = amount.bytes;
    slice.origin.assign(amount.origin);
    if (amount.limited) slice.job_limit = amount.bytes;
    if (const auto group = group_limit_for(settings(), identity); group && !sharing_.group.empty()) {
        slice.group_limit = std::min(*group, total);
        if (!slice.limited || slice.group_limit < slice.limit) slice.limit = slice.group_limit;
        if (!slice.limited) slice.origin.assign(find(settings(), Key::group_limit, identity)->origin);
        slice.limited = true;
    }
    const AllocatorChoice choice = allocator_for(settings(), identity);
    slice.allocator = choice.mode;
    slice.free = choice.free;
    slice.idle_release = choice.idle_release;
    if (choice.mode != AllocatorMode::direct && !slice.limited) {
        // All there is, none of it set aside; counted all the same.
        slice.limited = slice.own_headroom = true;
        slice.limit = total;
        slice.origin.assign(choice.origin);
    }
    if (const auto own = headroom_for(settings(), identity)) {
        slice.own_headroom = true;
        slice.headroom = *own;
    }
    return slice;
}

bool Process::identify(CUdevice device, GpuIdentity* identity) const {
    CUuuid uuid{};
    if (CUSLICE_REAL(cuDeviceGetUuid_v2)(&uuid, device) != CUDA_SUCCESS &&
        CUSLICE_REAL(cuDeviceGetUuid)(&uuid, device) != CUDA_SUCCESS)
        return false;
    format_uuid(uuid, identity->uuid);
    if (CUSLICE_REAL(cuDeviceGetPCIBusId)(identity->pci, sizeof(identity->pci), device) != CUDA_SUCCESS)
        identity->pci[0] = '\0';
    return true;
}

// All GPUs of the host as NVML has them, in PCI order.
std::size_t Process::list_gpus(std::span<GpuIdentity> all) {
    std::size_t count = 0;
    if (load_nvml_locked())
        for (unsigned i = 0, there = nvml_gpu_count(); i < there && count < all.size(); i++)
            if (nvml_gpu(i).identity(&all[count])) count++;
    return count;
}

bool Process::choose_gpus() {
    Loading loading(mutex_);
    if (gpus_open_) return true;
    GpuIdentity all[kMostGpus];
    const std::size_t count = resolves_gpus(settings(), environ) ? list_gpus(all) : 0;
    return settle_visible_devices(settings(), {all, count}, environ, error_) || fail_closed();
}

// Indices count all GPUs of the host in PCI order, whatever CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER make of them
// here, so only NVML can tell which GPU is meant. It is loaded only if somebody names a GPU.
bool Process::check_selectors(std::span<GpuIdentity> visible) {
    bool named = false;
    for (const Entry& entry : settings().entries()) named = named || entry.selector.kind != GpuSelector::Kind::every;
    if (!named) return true;

    GpuIdentity all[kMostGpus];
    const std::size_t count = list_gpus(all);
    if (count == 0) {
        for (const Entry& entry : settings().entries())
            if (entry.selector.kind == GpuSelector::Kind::index)
                return error_.set(
                    entry.origin, entry.selector.text,
                    "GPUs can't be told by their index where NVML is missing; name it by UUID (GPU-…) or PCI id");
        return check_against(settings(), visible, false, error_);
    }
    for (GpuIdentity& mine : visible)
        for (std::size_t k = 0; k < count; k++)
            if (std::strcmp(all[k].uuid, mine.uuid) == 0) mine = all[k];
    return check_against(settings(), {all, count}, true, error_);
}

// The driver has started by now, and would serve a program that doesn't look at what cuInit returned.
bool Process::fail_closed() {
    readiness_.store(Readiness::bad_configuration, std::memory_order_release);
    return false;
}

bool Process::open_gpus() {
    Loading loading(mutex_);
    if (gpus_open_) return true;
    int count = 0;
    if (CUSLICE_REAL(cuDeviceGetCount)(&count) != CUDA_SUCCESS) count = 0;
    if (count > kMostGpus) {
        error_.set("cuslice", "this process sees more than 64 GPUs, which is more than cuslice can limit");
        return fail_closed();
    }

    GpuIdentity identities[kMostGpus];
    for (int i = 0; i < count; i++) identify(i, &identities[i]);
    if (!check_selectors({identities, static_cast<std::size_t>(count)})) return fail_closed();

    bool limits = false, caching = false;
    for (int i = 0; i < count; i++) {
        char name[96] = "";
        std::size_t total = 0;
        CUSLICE_REAL(cuDeviceGetName)(name, sizeof(name), i);
        // A GPU whose memory isn't known has none to give where there is a limit.
        if (CUSLICE_REAL(cuDeviceTotalMem_v2)(&total, i) != CUDA_SUCCESS) total = 0;
        const VirtualGpu::Slice slice = slice_of(identities[i], total);
        (new (&gpu(i)) VirtualGpu)->open(i, i, identities[i], total, name, slice);
        limits = limits || slice.limited;
        caching = caching || gpu(i).caches();
    }
    const std::string_view record = record_file(settings());
    if (!record.empty()) recording_.start(record);
    limits_.store(limits || !record.empty(), std::memory_order_relaxed);
    ways_.store(static_cast<unsigned char>((caching ? kCaching : 0) | (record.empty() ? 0 : kRecording)),
                std::memory_order_relaxed);
    gpu_count_.store(count, std::memory_order_release);
    gpus_open_ = true;
    return true;
}

VirtualGpu* Process::gpu_of(CUdevice device) { return device >= 0 && device < gpu_count() ? &gpu(device) : nullptr; }

VirtualGpu* Process::find_gpu(const char* uuid) {
    for (int i = 0, n = gpu_count(); i < n; i++)
        if (std::strcmp(gpu(i).identity().uuid, uuid) == 0) return &gpu(i);
    return nullptr;
}

constinit thread_local Process::LastContext Process::last_context{};

const Process::Current& Process::look_up(CUcontext now) {
    LastContext& last = last_context;
    const std::uint32_t epoch = context_epoch_.load(std::memory_order_acquire);
    CUdevice device = -1;
    last = {};
    if (!now || CUSLICE_REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return last.current;
    VirtualGpu* gpu = gpu_of(device);
    const Contexts::Id id = contexts_.id_of(now, device);
    last = {now, {gpu, id, gpu && caches_anything() ? caches_.of(*gpu, id) : nullptr}, epoch};
    return last.current;
}

// No lock of ours may be held in a child by a thread that it does not have.
void Process::before_fork() {
    const int gpus = the_process.gpu_count();
    // First what is held while something grows, over anything else.
    for (int i = 0; i < gpus; i++) the_process.gpu(i).pools().lock_growing();
    the_process.caches_.lock_growing();
    for (int i = 0; i < gpus; i++) the_process.gpu(i).pools().lock_rest();
    if (!loading_now) the_process.mutex_.lock();
    the_process.caches_.lock_rest();
    the_process.contexts_.mutex().lock();
    the_process.physical_memory_.mutex().lock();
    the_process.graph_needs_.mutex().lock();
    for (int i = 0; i < gpus; i++) the_process.gpu(i).mutex().lock();
    the_process.allocations_.lock_all();
    forking_gpus = gpus;
}

void Process::after_fork() {
    the_process.allocations_.unlock_all();
    for (int i = forking_gpus; i-- > 0;) the_process.gpu(i).mutex().unlock();
    the_process.graph_needs_.mutex().unlock();
    the_process.physical_memory_.mutex().unlock();
    the_process.contexts_.mutex().unlock();
    the_process.caches_.unlock_all();
    if (!loading_now) the_process.mutex_.unlock();
    for (int i = forking_gpus; i-- > 0;) the_process.gpu(i).pools().unlock_all();
}

// What is shared is the parent's: its places and its locks are not the child's.
void Process::after_fork_in_child() {
    after_fork();
    // The driver answers no call in a child. What it says is what the program is to hear.
    the_process.ways_.store(0, std::memory_order_relaxed);
    the_process.recording_.forget();
    thread_caches = nullptr;
    the_process.caches_.ipc_blocks().forget();
    the_process.caches_.forget();
    for (int i = forking_gpus; i-- > 0;) {
        the_process.gpu(i).budget().unshare();
        the_process.gpu(i).sharing().forget();
    }
}

}  // namespace cuslice
