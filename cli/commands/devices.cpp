// SPDX-License-Identifier: Apache-2.0
// cuslice devices: what a program would see, beside what there is.
#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/gpus/fake_machine.h"
#include "cli/gpus/gpu_query.h"
#include "cli/gpus/slice_room.h"
#include "cli/gpus/unseen_gpus.h"
#include "cli/gpus/virtual_gpus.h"
#include "cli/launch/program_environment.h"
#include "cli/ledger/job.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/json.h"
#include "cli/text/report.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "config/resolve.h"

namespace cuslice::cli {
namespace {

/// One GPU as the program sees it, and the one of the machine that it is.
struct Device {
    Gpu seen;
    int index = -1;
    uint64_t total = 0;
    std::optional<uint64_t> free;
    std::string origin;
    std::optional<Gpu> physical;  // none if it wasn't found
    bool part = false;
    std::optional<int> priority;  // of a part that has one
    SliceRoom room;
};

// The GPU that one which is seen is, or is a part of.
void find_behind(Device& device, const Gpu& physical) {
    device.physical = physical;
    device.index = physical.ordinal;
    device.total = physical.total;
    if (physical.free)
        device.free = std::min(*physical.free, device.seen.total);
}

// By UUID: the program's order is not the machine's.
std::vector<Device> join(const std::vector<Gpu>& seen, const std::vector<Gpu>& machine, const Settings& settings,
                         const VirtualGpus& virtual_gpus, const Selection& selection) {
    std::vector<Device> devices;
    for (const Gpu& gpu : seen) {
        Device device{gpu, -1, gpu.total, {}, {}};
        for (const Gpu& physical : machine) {
            if (physical.uuid != gpu.uuid)
                continue;
            find_behind(device, physical);
            device.origin = amount_for(settings, identity_of(physical, physical.ordinal), physical.total).origin;
        }
        if (const auto behind = virtual_gpus.behind(selection, gpu.uuid)) {
            const Gpu& physical = behind->gpu;
            find_behind(device, physical);
            device.part = behind->part.split;
            device.priority = behind->part.priority;
            if (const Entry* split = find(settings, Key::split, identity_of(physical, physical.ordinal));
                split && device.part)
                device.origin = split->origin;
        }
        devices.push_back(device);
    }
    return devices;
}

// Finds the room that each device leaves to a program that sees all of them.
void find_rooms(std::vector<Device>& devices, const Settings& settings, const ContextSizes& contexts) {
    for (Device& device : devices) {
        uint64_t all = 0;
        for (const Device& other : devices)
            if (other.part && device.part && other.physical->uuid == device.physical->uuid)
                all += other.seen.total;
        const Gpu& gpu = device.physical ? *device.physical : device.seen;
        device.room = device.part ? room_of_part(settings, contexts, gpu, device.seen.total, all)
                                  : room_of(settings, contexts, gpu, device.seen.total);
        if (device.origin.empty())
            device.room.headroom = 0;  // nothing limits it
    }
}

// "~" where the size of a context is only believed, and matters.
std::string text_of_room(const SliceRoom& room) {
    return (room.context_known || room.plus_context ? "" : "~") + format_memory(room.left());
}

std::string text_of_limit(const Device& device) {
    return format_memory(device.seen.total) + (device.room.plus_context ? " + context" : "");
}

// Priorities are there where some part has one.
std::string as_table(const std::vector<Device>& devices) {
    std::vector<std::vector<Cell>> rows = {
        {"CUDA", "INDEX", "NAME", "UUID", "PCI", "TOTAL", "FREE", "LIMIT", "ALLOCATABLE", "FROM"}};
    const bool priorities =
        std::any_of(devices.begin(), devices.end(), [](const Device& one) { return one.priority.has_value(); });
    if (priorities)
        rows[0].insert(rows[0].end() - 1, "PRIORITY");
    for (const Device& device : devices) {
        rows.push_back({std::to_string(device.seen.ordinal), device.index < 0 ? "?" : std::to_string(device.index),
                        device.seen.name, device.seen.uuid, device.seen.pci, format_memory(device.total),
                        device.free ? format_memory(*device.free) : "?", text_of_limit(device),
                        text_of_room(device.room), device.origin.empty() ? "the whole GPU" : device.origin});
        if (priorities)
            rows.back().insert(rows.back().end() - 1, device.priority ? std::to_string(*device.priority) : "-");
    }
    return format_table(rows, style_of_output());
}

// Sizes are plain numbers of bytes: exact, and the same on every machine.
std::string as_json(const std::vector<Device>& devices) {
    Json list = Json::array();
    for (const Device& device : devices) {
        list.push_back({{"ordinal", device.seen.ordinal},
                        {"index", device.index < 0 ? Json() : Json(device.index)},
                        {"name", device.seen.name},
                        {"uuid", device.seen.uuid},
                        {"pci", device.seen.pci},
                        {"total", device.total},
                        {"free", device.free ? Json(*device.free) : Json()},
                        {"limit", device.seen.total},
                        {"context", device.room.context},
                        {"context_known", device.room.context_known},
                        {"plus_context", device.room.plus_context},
                        {"headroom", device.room.headroom},
                        {"left", device.room.left()},
                        {"priority", device.priority ? Json(*device.priority) : Json()},
                        {"origin", device.origin.empty() ? Json() : Json(device.origin)}});
    }
    return json_text({{"version", 1}, {"devices", list}});
}

// Programs get an empty list and the exit code, people the reason.
int no_gpu(const Invocation& invocation, const std::string& why) {
    if (invocation.arguments.json)
        std::fputs(as_json({}).c_str(), stdout);
    return fail(why, kNoGpu);
}

}  // namespace

int list_devices(const Invocation& invocation) {
    ConfigError error;
    Launch launch;
    if (!load_launch(launch, invocation, error))
        return fail(error, kConfig);
    const Settings& settings = launch.settings;
    const Installation& installation = launch.installation;
    Environment environment = invocation.environment;
    if (!enter_fake_machine(environment, settings, error))
        return fail(error, kConfig);
    VirtualGpus virtual_gpus(settings, environment);
    Machine machine(virtual_gpus.physical(), settings, installation);
    const Gpus& all = machine.all();
    if (!all.failure.empty())
        return no_gpu(invocation, "no GPU can be listed: " + all.failure);
    if (all.list.empty())
        return no_gpu(invocation, "no GPU can be listed: the driver has none");

    std::vector<GpuIdentity> identities;
    for (const Gpu& gpu : all.list)
        identities.push_back(identity_of(gpu, gpu.ordinal));
    Selection selection;
    if (!check_against(settings, identities, true, error))
        return fail(error, kConfig);
    virtual_gpus.look_outside(machine);
    if (!select_gpus(settings, virtual_gpus.physical(), machine, selection, error) ||
        !check_seen(settings, virtual_gpus.physical(), machine, selection, error) ||
        !virtual_gpus.plan(machine, selection, error) ||
        !prepare_environment(environment, settings, installation, error)) {
        return fail(error, kConfig);
    }
    if (selection.how == Selection::How::any)
        select_one(selection, emptiest(environment, settings, machine, selection));
    virtual_gpus.show(environment, selection);
    // Asked of the library itself, not computed here: what is shown is what a program will be told.
    const Gpus seen = query_as_program(environment, installation);
    if (!seen.failure.empty())
        return no_gpu(invocation, "a program would see no GPU: " + seen.failure);
    std::vector<Device> devices = join(seen.list, all.list, settings, virtual_gpus, selection);
    find_rooms(devices, settings, launch.contexts);
    std::fputs((invocation.arguments.json ? as_json(devices) : as_table(devices)).c_str(), stdout);
    return 0;
}

}  // namespace cuslice::cli
