// SPDX-License-Identifier: Apache-2.0
// Telling frameworks of the slices, where no launcher could: after the driver has started and before the program goes
// on.
#include <string_view>

#include "config/number.h"
#include "config/resolve.h"
#include "policy/frameworks/slice_room.h"
#include "shim/process/process.h"
#include "virtual_gpu/driver/load.h"
#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

namespace {

// The size of a fake GPU's context, which the launcher knows as well. Nobody knows a real one's before it is there.
class ContextSizes {
  public:
    // The fake driver answers with a line for each GPU, "UUID BYTES".
    void ask(const Entry& fake) {
        using Check = int(const char* spec, char* message, size_t size);
        auto* const check = reinterpret_cast<Check*>(find_in_driver("cuslice_fake_check"));
        FixedText<4200> spec(fake.value);
        if (check && check(spec.c_str(), text_, sizeof(text_)) != 0)
            text_[0] = '\0';
    }
    std::optional<uint64_t> of(std::string_view uuid) const {
        for (std::string_view rest = text_; !rest.empty();) {
            bool more = false;
            const std::string_view line = take_item(rest, '\n', more);
            const bool is_its = starts_with(line, uuid) && starts_with(slice(line, uuid.size()), " ");
            if (is_its)
                return read_number(line.data() + uuid.size() + 1);
        }
        return std::nullopt;
    }

  private:
    char text_[8192] = {};
};

struct Telling {
    ContextSizes contexts;
    SliceRooms rooms;
    FrameworkValues values;
};

// Parts of one GPU have it in common.
bool was_met(int ordinal) {
    for (int i = 0; i < ordinal; i++)
        if (&process().gpu(i).physical() == &process().gpu(ordinal).physical())
            return true;
    return false;
}

void add_rooms(const Settings& settings, int ordinal, Telling& telling) {
    const PhysicalGpu& physical = process().gpu(ordinal).physical();
    const SeenGpu gpu{physical.identity(), physical.total(), telling.contexts.of(physical.identity().uuid)};
    telling.rooms.find(settings, gpu);
    telling.values.add(telling.rooms.view());
}

}  // namespace

void Process::tell_frameworks() {
    {
        const LockGuard lock(mutex_);
        if (told_frameworks_)
            return;
    }
    const Scratch<Telling> telling;
    if (!telling)
        return;
    if (!leaves_frameworks_alone(settings())) {
        if (any_grows(settings()))
            telling->values.grow();
        if (const Entry* const fake = find(settings(), Key::fake))
            telling->contexts.ask(*fake);
        for (int i = 0; i < gpu_count(); i++)
            if (!was_met(i))
                add_rooms(settings(), i, *telling);
    }
    const LockGuard lock(mutex_);
    if (told_frameworks_)
        return;
    told_frameworks_ = true;
    set_framework_variables(telling->values, missed_variables_);
}

}  // namespace cuslice
