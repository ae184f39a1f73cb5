// SPDX-License-Identifier: Apache-2.0
// Making, setting and reading cuBLASLt's descriptors.

#include "fake/cublaslt/descriptor.h"

#include <cstdlib>
#include <cstring>

namespace cuslice::fake {
namespace {

struct Field {
    int attribute;
    size_t offset, size;
};

#define CUSLICE_FIELD(number, structure, member) \
    { number, offsetof(structure, member), sizeof(structure::member) }
#define CUSLICE_ITEM(number, structure, member, index) \
    { number, offsetof(structure, member) + (index) * sizeof(structure{}.member[0]), sizeof(structure{}.member[0]) }

// cublasLtMatmulDescAttributes_t; 27 to 30 are CUDA 12's CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_….
constexpr Field kMatmulFields[] = {
    CUSLICE_FIELD(0, MatmulDescriptor, compute),
    CUSLICE_FIELD(1, MatmulDescriptor, scale_type),
    CUSLICE_FIELD(2, MatmulDescriptor, pointer_mode),
    CUSLICE_FIELD(3, MatmulDescriptor, op_a),
    CUSLICE_FIELD(4, MatmulDescriptor, op_b),
    CUSLICE_FIELD(5, MatmulDescriptor, op_c),
    CUSLICE_FIELD(6, MatmulDescriptor, fill_mode),
    CUSLICE_FIELD(7, MatmulDescriptor, epilogue),
    CUSLICE_FIELD(8, MatmulDescriptor, bias),
    CUSLICE_FIELD(10, MatmulDescriptor, bias_stride),
    CUSLICE_FIELD(11, MatmulDescriptor, aux),
    CUSLICE_FIELD(12, MatmulDescriptor, aux_ld),
    CUSLICE_FIELD(13, MatmulDescriptor, aux_stride),
    CUSLICE_FIELD(14, MatmulDescriptor, alpha_stride),
    CUSLICE_FIELD(15, MatmulDescriptor, multiprocessors),
    CUSLICE_ITEM(17, MatmulDescriptor, scales, 0),
    CUSLICE_ITEM(18, MatmulDescriptor, scales, 1),
    CUSLICE_ITEM(19, MatmulDescriptor, scales, 2),
    CUSLICE_ITEM(20, MatmulDescriptor, scales, 3),
    CUSLICE_FIELD(21, MatmulDescriptor, largest_d),
    CUSLICE_FIELD(22, MatmulDescriptor, aux_type),
    CUSLICE_FIELD(23, MatmulDescriptor, aux_scale),
    CUSLICE_FIELD(24, MatmulDescriptor, aux_largest),
    CUSLICE_FIELD(25, MatmulDescriptor, fast_accumulation),
    CUSLICE_FIELD(26, MatmulDescriptor, bias_type),
    CUSLICE_FIELD(27, MatmulDescriptor, chunk_rows),
    CUSLICE_FIELD(28, MatmulDescriptor, chunk_columns),
    CUSLICE_FIELD(29, MatmulDescriptor, counters_in),
    CUSLICE_FIELD(30, MatmulDescriptor, counters_out),
    CUSLICE_ITEM(31, MatmulDescriptor, scale_modes, 0),
    CUSLICE_ITEM(32, MatmulDescriptor, scale_modes, 1),
    CUSLICE_ITEM(33, MatmulDescriptor, scale_modes, 2),
    CUSLICE_ITEM(34, MatmulDescriptor, scale_modes, 3),
    CUSLICE_ITEM(35, MatmulDescriptor, scale_modes, 4),
    CUSLICE_FIELD(36, MatmulDescriptor, out_scale),
    CUSLICE_FIELD(37, MatmulDescriptor, out_scale_mode),
    CUSLICE_FIELD(38, MatmulDescriptor, emulation),
};

// cublasLtMatrixLayoutAttribute_t
constexpr Field kLayoutFields[] = {
    CUSLICE_FIELD(0, LayoutDescriptor, type),       CUSLICE_FIELD(1, LayoutDescriptor, order),
    CUSLICE_FIELD(2, LayoutDescriptor, rows),       CUSLICE_FIELD(3, LayoutDescriptor, columns),
    CUSLICE_FIELD(4, LayoutDescriptor, ld),         CUSLICE_FIELD(5, LayoutDescriptor, count),
    CUSLICE_FIELD(6, LayoutDescriptor, stride),     CUSLICE_FIELD(7, LayoutDescriptor, plane),
    CUSLICE_FIELD(8, LayoutDescriptor, batch_mode),
};

// cublasLtMatmulPreferenceAttributes_t
constexpr Field kPreferenceFields[] = {
    CUSLICE_FIELD(0, PreferenceDescriptor, search_mode),      CUSLICE_FIELD(1, PreferenceDescriptor, workspace),
    CUSLICE_FIELD(3, PreferenceDescriptor, reductions),       CUSLICE_ITEM(5, PreferenceDescriptor, alignments, 0),
    CUSLICE_ITEM(6, PreferenceDescriptor, alignments, 1),     CUSLICE_ITEM(7, PreferenceDescriptor, alignments, 2),
    CUSLICE_ITEM(8, PreferenceDescriptor, alignments, 3),     CUSLICE_FIELD(9, PreferenceDescriptor, waves),
    CUSLICE_FIELD(12, PreferenceDescriptor, implementations),
};

// cublasLtMatmulAlgoConfigAttributes_t
constexpr Field kAlgorithmFields[] = {
    CUSLICE_FIELD(0, Algorithm, id),
    CUSLICE_FIELD(1, Algorithm, tile),
    CUSLICE_FIELD(2, Algorithm, splits),
    CUSLICE_FIELD(3, Algorithm, reduction),
    CUSLICE_FIELD(4, Algorithm, swizzling),
    CUSLICE_FIELD(5, Algorithm, option),
    CUSLICE_FIELD(6, Algorithm, stages),
    CUSLICE_FIELD(7, Algorithm, inner_shape),
    CUSLICE_FIELD(8, Algorithm, cluster_shape),
};

template <size_t Count>
const Field* find(const Field (&fields)[Count], int attribute) {
    for (const Field& field : fields)
        if (field.attribute == attribute)
            return &field;
    return nullptr;
}

template <class Descriptor, size_t Count>
CublasStatus set(Descriptor* descriptor, const Field (&fields)[Count], int attribute, const void* from, size_t size) {
    const Field* field = find(fields, attribute);
    if (!is_descriptor(descriptor) || field == nullptr || from == nullptr || size != field->size)
        return CublasStatus::invalid_value;
    std::memcpy(reinterpret_cast<char*>(descriptor) + field->offset, from, size);
    return CublasStatus::success;
}

template <class Descriptor, size_t Count>
CublasStatus get(const Descriptor* descriptor, const Field (&fields)[Count], int attribute, void* to, size_t size,
                 size_t* written) {
    const Field* field = find(fields, attribute);
    if (!is_descriptor(descriptor) || field == nullptr)
        return CublasStatus::invalid_value;
    if (size == 0) {
        // Documented: asks for the size.
        if (written == nullptr)
            return CublasStatus::invalid_value;
        *written = field->size;
        return CublasStatus::success;
    }
    if (to == nullptr || size != field->size)
        return CublasStatus::invalid_value;
    std::memcpy(to, reinterpret_cast<const char*>(descriptor) + field->offset, size);
    if (written != nullptr)
        *written = field->size;
    return CublasStatus::success;
}

MatmulDescriptor fresh_matmul(int compute, int scale_type) {
    MatmulDescriptor fresh{};
    fresh.kind = DescriptorKind::matmul;
    fresh.compute = compute;
    fresh.scale_type = scale_type;
    fresh.fill_mode = 2;  // CUBLAS_FILL_MODE_FULL
    fresh.epilogue = epilogue_default;
    fresh.aux_type = fresh.bias_type = -1;  // that of D
    return fresh;
}

LayoutDescriptor fresh_layout(int type, uint64_t rows, uint64_t columns, int64_t ld) {
    LayoutDescriptor fresh{};
    fresh.kind = DescriptorKind::layout;
    fresh.type = static_cast<uint32_t>(type);
    fresh.rows = rows;
    fresh.columns = columns;
    fresh.ld = ld;
    fresh.count = 1;
    return fresh;
}

PreferenceDescriptor fresh_preference() {
    PreferenceDescriptor fresh{};
    fresh.kind = DescriptorKind::preference;
    fresh.reductions = 0x7;  // CUBLASLT_REDUCTION_SCHEME_MASK
    for (auto& bytes : fresh.alignments)
        bytes = 256;  // documented default
    fresh.implementations = ~uint64_t{0};
    return fresh;
}

template <class Descriptor>
CublasStatus create(Descriptor** out, const Descriptor& fresh) {
    if (out == nullptr)
        return CublasStatus::invalid_value;
    void* memory = std::malloc(sizeof(Descriptor));
    if (memory == nullptr)
        return CublasStatus::alloc_failed;
    std::memcpy(memory, &fresh, sizeof fresh);
    *out = static_cast<Descriptor*>(memory);
    return CublasStatus::success;
}

template <class Descriptor>
CublasStatus initialise(Descriptor* out, size_t size, const Descriptor& fresh) {
    if (out == nullptr)
        return CublasStatus::invalid_value;
    if (size < sizeof fresh)
        return CublasStatus::alloc_failed;
    std::memcpy(out, &fresh, sizeof fresh);
    return CublasStatus::success;
}

template <class Descriptor>
CublasStatus destroy(Descriptor* descriptor) {
    if (descriptor == nullptr)
        return CublasStatus::success;
    if (!is_descriptor(descriptor))
        return CublasStatus::invalid_value;
    descriptor->kind = DescriptorKind::none;
    std::free(descriptor);
    return CublasStatus::success;
}

}  // namespace
}  // namespace cuslice::fake

using namespace cuslice::fake;

/// The two functions that set and read the attributes of a kind of descriptor.
#define CUSLICE_ATTRIBUTES(prefix, Descriptor, fields)                                                        \
    CublasStatus prefix##SetAttribute(Descriptor* descriptor, int attribute, const void* from, size_t size) { \
        return set(descriptor, fields, attribute, from, size);                                                \
    }                                                                                                         \
    CublasStatus prefix##GetAttribute(const Descriptor* descriptor, int attribute, void* to, size_t size,     \
                                      size_t* written) {                                                      \
        return get(descriptor, fields, attribute, to, size, written);                                         \
    }

extern "C" {

CUSLICE_ATTRIBUTES(cublasLtMatmulDesc, MatmulDescriptor, kMatmulFields)
CUSLICE_ATTRIBUTES(cublasLtMatrixLayout, LayoutDescriptor, kLayoutFields)
CUSLICE_ATTRIBUTES(cublasLtMatmulPreference, PreferenceDescriptor, kPreferenceFields)
CUSLICE_ATTRIBUTES(cublasLtMatmulAlgoConfig, Algorithm, kAlgorithmFields)

CublasStatus cublasLtMatmulDescCreate(MatmulDescriptor** out, int compute, int scale_type) {
    return create(out, fresh_matmul(compute, scale_type));
}
CublasStatus cublasLtMatmulDescInit_internal(MatmulDescriptor* out, size_t size, int compute, int scale_type) {
    return initialise(out, size, fresh_matmul(compute, scale_type));
}
CublasStatus cublasLtMatmulDescDestroy(MatmulDescriptor* descriptor) { return destroy(descriptor); }

CublasStatus cublasLtMatrixLayoutCreate(LayoutDescriptor** out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
    return create(out, fresh_layout(type, rows, columns, ld));
}
CublasStatus cublasLtMatrixLayoutInit_internal(LayoutDescriptor* out, size_t size, int type, uint64_t rows,
                                               uint64_t columns, int64_t ld) {
    return initialise(out, size, fresh_layout(type, rows, columns, ld));
}
CublasStatus cublasLtMatrixLayoutDestroy(LayoutDescriptor* descriptor) { return destroy(descriptor); }

CublasStatus cublasLtMatmulPreferenceCreate(PreferenceDescriptor** out) { return create(out, fresh_preference()); }
CublasStatus cublasLtMatmulPreferenceInit_internal(PreferenceDescriptor* out, size_t size) {
    return initialise(out, size, fresh_preference());
}
CublasStatus cublasLtMatmulPreferenceDestroy(PreferenceDescriptor* descriptor) { return destroy(descriptor); }

}  // extern "C"
