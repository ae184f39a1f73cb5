// Where managed memory is to be, where a copy finds its operands, and for which GPUs tiles of an array are bound.
#include <algorithm>

#include "policy/base/page_vector.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// The program's array, which is only to be read, with physical places in a copy.
template <typename Item>
class Copy {
  public:
    Copy(const Item* items, std::size_t count) {
        for (std::size_t i = 0; items && i < count && complete_; i++) complete_ = copy_.push_back(items[i]);
        given_ = items;
    }
    ~Copy() { copy_.release(); }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    bool complete() const { return complete_; }
    Item* begin() { return copy_.begin(); }
    Item* end() { return copy_.end(); }
    Item* get() { return given_ ? copy_.begin() : nullptr; }

  private:
    PageVector<Item> copy_;
    const Item* given_ = nullptr;
    bool complete_ = true;
};

template <typename Item, typename Translate, typename Call>
CUresult with_copy(const Item* items, std::size_t count, Translate translate, Call call) {
    Copy<Item> copy(items, count);
    if (!copy.complete()) return CUDA_ERROR_OUT_OF_MEMORY;
    for (Item& item : copy) translate(item);
    return call(copy.get());
}

void translate_location(CUmemLocation& location) { to_physical(location); }

void translate_hints(CUmemcpyAttributes& attributes) {
    to_physical(attributes.srcLocHint);
    to_physical(attributes.dstLocHint);
}

void translate_operand(CUmemcpy3DOperand& operand) {
    if (operand.type == CU_MEMCPY_OPERAND_TYPE_POINTER) to_physical(operand.op.ptr.locHint);
}
void translate_box(CUDA_MEMCPY3D_BATCH_OP& box) {
    translate_operand(box.src);
    translate_operand(box.dst);
}

// A bit for each GPU. One that there is not becomes the last bit, which is no GPU's either.
void translate_tiles(CUarrayMapInfo& tiles) {
    constexpr unsigned kBits = 32;
    unsigned real = 0;
    for (unsigned i = 0; i < kBits; i++) {
        if (!(tiles.deviceBitMask >> i & 1)) continue;
        const Split::Device* device = split().device(static_cast<int>(i));
        real |= 1u << (device ? static_cast<unsigned>(device->physical) : kBits - 1);
    }
    if (split().is_open()) tiles.deviceBitMask = real;
}

// The host stands beside the GPUs in the old forms.
void to_physical_or_host(CUdevice& device) {
    if (device != CU_DEVICE_CPU) to_physical(device);
}

}  // namespace

namespace split_driver {

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
    to_physical_or_host(device);
    return CUSLICE_PHYSICAL(cuMemAdvise)(address, bytes, advice, device);
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location) {
    to_physical(location);
    return CUSLICE_PHYSICAL(cuMemAdvise_v2)(address, bytes, advice, location);
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
    to_physical_or_host(device);
    return CUSLICE_PHYSICAL(cuMemPrefetchAsync)(address, bytes, device, stream);
}
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
    to_physical_or_host(device);
    return CUSLICE_PHYSICAL(cuMemPrefetchAsync_ptsz)(address, bytes, device, stream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                               CUstream stream) {
    to_physical(location);
    return CUSLICE_PHYSICAL(cuMemPrefetchAsync_v2)(address, bytes, location, flags, stream);
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                                    CUstream stream) {
    to_physical(location);
    return CUSLICE_PHYSICAL(cuMemPrefetchAsync_v2_ptsz)(address, bytes, location, flags, stream);
}

#define CUSLICE_PREFETCH_BATCH(symbol)                                                                           \
    CUresult symbol(CUdeviceptr* addresses, size_t* sizes, size_t count, CUmemLocation* places, size_t* indices, \
                    size_t place_count, unsigned long long flags, CUstream stream) {                             \
        return with_copy(places, place_count, translate_location, [&](CUmemLocation* real) {                     \
            return CUSLICE_PHYSICAL(symbol)(addresses, sizes, count, real, indices, place_count, flags, stream); \
        });                                                                                                      \
    }
CUSLICE_PREFETCH_BATCH(cuMemPrefetchBatchAsync)
CUSLICE_PREFETCH_BATCH(cuMemPrefetchBatchAsync_ptsz)
CUSLICE_PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync)
CUSLICE_PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync_ptsz)
#undef CUSLICE_PREFETCH_BATCH

CUresult cuMemMapArrayAsync(CUarrayMapInfo* tiles, unsigned count, CUstream stream) {
    return with_copy(tiles, count, translate_tiles,
                     [&](CUarrayMapInfo* real) { return CUSLICE_PHYSICAL(cuMemMapArrayAsync)(real, count, stream); });
}
CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* tiles, unsigned count, CUstream stream) {
    return with_copy(tiles, count, translate_tiles, [&](CUarrayMapInfo* real) {
        return CUSLICE_PHYSICAL(cuMemMapArrayAsync_ptsz)(real, count, stream);
    });
}

#define CUSLICE_COPY_BATCH_V1(symbol)                                                                         \
    CUresult symbol(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count, CUmemcpyAttributes* how, \
                    size_t* indices, size_t how_many, size_t* failed, CUstream stream) {                      \
        return with_copy(how, how_many, translate_hints, [&](CUmemcpyAttributes* real) {                      \
            return CUSLICE_PHYSICAL(symbol)(to, from, sizes, count, real, indices, how_many, failed, stream); \
        });                                                                                                   \
    }
CUSLICE_COPY_BATCH_V1(cuMemcpyBatchAsync)
CUSLICE_COPY_BATCH_V1(cuMemcpyBatchAsync_ptsz)
#undef CUSLICE_COPY_BATCH_V1

#define CUSLICE_COPY_BATCH(symbol)                                                                            \
    CUresult symbol(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count, CUmemcpyAttributes* how, \
                    size_t* indices, size_t how_many, CUstream stream) {                                      \
        return with_copy(how, how_many, translate_hints, [&](CUmemcpyAttributes* real) {                      \
            return CUSLICE_PHYSICAL(symbol)(to, from, sizes, count, real, indices, how_many, stream);         \
        });                                                                                                   \
    }
CUSLICE_COPY_BATCH(cuMemcpyBatchAsync_v2)
CUSLICE_COPY_BATCH(cuMemcpyBatchAsync_v2_ptsz)
#undef CUSLICE_COPY_BATCH

#define CUSLICE_BOX_BATCH_V1(symbol)                                                                       \
    CUresult symbol(size_t count, CUDA_MEMCPY3D_BATCH_OP* boxes, size_t* failed, unsigned long long flags, \
                    CUstream stream) {                                                                     \
        return with_copy(boxes, count, translate_box, [&](CUDA_MEMCPY3D_BATCH_OP* real) {                  \
            return CUSLICE_PHYSICAL(symbol)(count, real, failed, flags, stream);                           \
        });                                                                                                \
    }
CUSLICE_BOX_BATCH_V1(cuMemcpy3DBatchAsync)
CUSLICE_BOX_BATCH_V1(cuMemcpy3DBatchAsync_ptsz)
#undef CUSLICE_BOX_BATCH_V1

#define CUSLICE_BOX_BATCH(symbol)                                                                             \
    CUresult symbol(size_t count, CUDA_MEMCPY3D_BATCH_OP* boxes, unsigned long long flags, CUstream stream) { \
        return with_copy(boxes, count, translate_box, [&](CUDA_MEMCPY3D_BATCH_OP* real) {                     \
            return CUSLICE_PHYSICAL(symbol)(count, real, flags, stream);                                      \
        });                                                                                                   \
    }
CUSLICE_BOX_BATCH(cuMemcpy3DBatchAsync_v2)
CUSLICE_BOX_BATCH(cuMemcpy3DBatchAsync_v2_ptsz)
#undef CUSLICE_BOX_BATCH

}  // namespace split_driver

}  // namespace cuslice
