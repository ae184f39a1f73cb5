#include "integrations/slurm/values.h"

#include <cstring>

#include "config/fraction.h"
#include "config/value.h"

namespace {

using namespace cuslice;

bool read(Key key, const char* text, cuslice_value* value) {
    Reason why;
    bool automatic = false;
    if (parse_value(key, text, value->number, automatic, why)) return true;
    value->number = 0;
    std::memcpy(value->why, why.c_str(), why.view().size() + 1);  // a Reason has room for as much
    return false;
}

}  // namespace

extern "C" {

const std::uint64_t cuslice_whole = Fraction::kWhole;

// Without `+context`: a job's slice counts its contexts, as its shards do.
bool cuslice_read_size(const char* text, cuslice_value* value) { return read(Key::group_limit, text, value); }
bool cuslice_read_fraction(const char* text, cuslice_value* value) { return read(Key::fraction, text, value); }
bool cuslice_read_split(const char* text, cuslice_value* value) { return read(Key::split, text, value); }
}
