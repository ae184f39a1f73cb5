// SPDX-License-Identifier: Apache-2.0
#pragma once
// Objects of the program's that graphs keep alive: counted references, and a function that is called after the last.

#include <map>

#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

CUresult create_user_object(void* data, CUhostFn destroy, unsigned references, CUuserObject& out);
/// CUDA_ERROR_INVALID_VALUE for what is no object, for no references, and for more than there are.
CUresult retain_user_object(CUuserObject object, unsigned count);
/// The function is called by a thread of its own, as is documented: no call of CUDA's waits for it.
CUresult release_user_object(CUuserObject object, unsigned count);

/// References that a graph holds, or an instance or a launch of it. A copy holds as many again.
class HeldObjects {
  public:
    HeldObjects() = default;
    HeldObjects(const HeldObjects& other);
    HeldObjects& operator=(const HeldObjects&) = delete;
    ~HeldObjects();

    bool empty() const { return counts_.empty(); }
    /// Takes over references that the caller has.
    void take(CUuserObject object, unsigned count) { counts_[object] += count; }
    /// CUDA_ERROR_INVALID_VALUE if it holds fewer.
    CUresult release(CUuserObject object, unsigned count);

  private:
    std::map<CUuserObject, unsigned> counts_;
};

}  // namespace cuslice::fake
