// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/user_object.h"

#include <climits>
#include <mutex>
#include <thread>

#include "fake/driver/find.h"
#include "fake/driver/handles.h"

namespace cuslice::fake {
namespace {

struct UserObject {
    void* data = nullptr;
    CUhostFn destroy = nullptr;
    unsigned references = 0;
};
constinit HandleTable<UserObject, CUuserObject, HandleKind::UserObject> objects;
constinit std::mutex objects_lock;

}  // namespace

CUresult create_user_object(void* data, CUhostFn destroy, unsigned references, CUuserObject& out) {
    if (destroy == nullptr || references == 0 || references > INT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    out = objects.create(UserObject{data, destroy, references}).first;
    return CUDA_SUCCESS;
}

CUresult retain_user_object(CUuserObject handle, unsigned count) {
    const std::lock_guard hold(objects_lock);
    CUSLICE_FIND_ARGUMENT(object, objects, handle);
    if (count == 0 || count > INT_MAX - object->references)
        return CUDA_ERROR_INVALID_VALUE;
    object->references += count;
    return CUDA_SUCCESS;
}

CUresult release_user_object(CUuserObject handle, unsigned count) {
    const std::lock_guard hold(objects_lock);
    CUSLICE_FIND_ARGUMENT(object, objects, handle);
    if (count == 0 || count > object->references)
        return CUDA_ERROR_INVALID_VALUE;
    object->references -= count;
    if (object->references > 0)
        return CUDA_SUCCESS;
    std::thread(object->destroy, object->data).detach();
    objects.destroy(handle);
    return CUDA_SUCCESS;
}

HeldObjects::HeldObjects(const HeldObjects& other) : counts_(other.counts_) {
    for (const auto& [object, count] : counts_)
        retain_user_object(object, count);
}

HeldObjects::~HeldObjects() {
    for (const auto& [object, count] : counts_)
        release_user_object(object, count);
}

CUresult HeldObjects::release(CUuserObject object, unsigned count) {
    const auto found = counts_.find(object);
    if (found == counts_.end() || count == 0 || count > found->second)
        return CUDA_ERROR_INVALID_VALUE;
    found->second -= count;
    if (found->second == 0)
        counts_.erase(found);
    return release_user_object(object, count);
}

}  // namespace cuslice::fake
