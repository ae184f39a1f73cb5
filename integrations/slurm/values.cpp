// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/values.h"

#include <cstring>

#include "config/fraction.h"
#include "config/plus_context.h"
#include "config/value.h"

namespace {

using namespace cuslice;

bool refuse(const Reason& why, cuslice_value* value) {
    value->number = 0;
    std::memcpy(value->why, why.c_str(), why.view().size() + 1);  // a Reason has room for as much
    return false;
}

bool read(Key key, const char* text, cuslice_value* value) {
    Reason why;
    bool automatic = false;
    if (has_plus_context(text))
        why.assign("a job's slice counts its contexts: leave out +context");
    else if (parse_value(key, text, value->number, automatic, why))
        return true;
    return refuse(why, value);
}

}  // namespace

extern "C" {

const uint64_t cuslice_whole = Fraction::kWhole;

bool cuslice_read_size(const char* text, cuslice_value* value) { return read(Key::limit, text, value); }
bool cuslice_read_fraction(const char* text, cuslice_value* value) { return read(Key::fraction, text, value); }

// The option is for all GPUs alike, where no two partitions can have one place or one number.
bool cuslice_read_split(const char* text, cuslice_value* value) {
    if (!read(Key::split, text, value))
        return false;
    if (!std::strpbrk(text, "@#:"))
        return true;
    return refuse(Reason("places, numbers and priorities are of one GPU's partitions: write CUSLICE_SPLIT for them"),
                  value);
}
}
