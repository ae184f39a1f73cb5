// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/mappings.h"

namespace cuslice::fake {

Tables& tables() {
    static auto* one = new Tables;
    return *one;
}

bool in_reserved_addresses(Address address) {
    const std::shared_lock hold(tables().lock);
    return around(tables().reservations, address) != tables().reservations.end();
}

}  // namespace cuslice::fake
