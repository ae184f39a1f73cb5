// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <tuple>

// Parameter lists with the types of NVIDIA's headers: CUSLICE_PARAMETERS(cuMemFree_v2, address) is `CUdeviceptr
// address`. What is defined with one names its parameters and can't have another type than NVIDIA declares: too few
// names, or too many, don't compile.

namespace cuslice::detail {

template <typename Type, size_t kFromEnd>
struct Parameter;
template <typename Result, typename... Types, size_t kFromEnd>
struct Parameter<Result(Types...), kFromEnd> {
    using type = std::tuple_element_t<sizeof...(Types) - kFromEnd, std::tuple<Types...>>;
};

}  // namespace cuslice::detail

#define CUSLICE_PARAMETERS(symbol, ...) \
    __VA_OPT__(CUSLICE_PARAMETERS_OF(CUSLICE_COUNT(__VA_ARGS__))(symbol, __VA_ARGS__))

#define CUSLICE_COUNT(...) CUSLICE_SEVENTEENTH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, )
#define CUSLICE_SEVENTEENTH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, seventeenth, ...) seventeenth
#define CUSLICE_PARAMETERS_OF(count) CUSLICE_PARAMETERS_OF_(count)
#define CUSLICE_PARAMETERS_OF_(count) CUSLICE_PARAMETERS_##count

#define CUSLICE_PARAMETER(symbol, from_end, name) \
    [[maybe_unused]] ::cuslice::detail::Parameter<decltype(::symbol), from_end>::type name
#define CUSLICE_PARAMETERS_1(s, name) CUSLICE_PARAMETER(s, 1, name)
#define CUSLICE_PARAMETERS_2(s, name, ...) CUSLICE_PARAMETER(s, 2, name), CUSLICE_PARAMETERS_1(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_3(s, name, ...) CUSLICE_PARAMETER(s, 3, name), CUSLICE_PARAMETERS_2(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_4(s, name, ...) CUSLICE_PARAMETER(s, 4, name), CUSLICE_PARAMETERS_3(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_5(s, name, ...) CUSLICE_PARAMETER(s, 5, name), CUSLICE_PARAMETERS_4(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_6(s, name, ...) CUSLICE_PARAMETER(s, 6, name), CUSLICE_PARAMETERS_5(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_7(s, name, ...) CUSLICE_PARAMETER(s, 7, name), CUSLICE_PARAMETERS_6(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_8(s, name, ...) CUSLICE_PARAMETER(s, 8, name), CUSLICE_PARAMETERS_7(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_9(s, name, ...) CUSLICE_PARAMETER(s, 9, name), CUSLICE_PARAMETERS_8(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_10(s, name, ...) CUSLICE_PARAMETER(s, 10, name), CUSLICE_PARAMETERS_9(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_11(s, name, ...) CUSLICE_PARAMETER(s, 11, name), CUSLICE_PARAMETERS_10(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_12(s, name, ...) CUSLICE_PARAMETER(s, 12, name), CUSLICE_PARAMETERS_11(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_13(s, name, ...) CUSLICE_PARAMETER(s, 13, name), CUSLICE_PARAMETERS_12(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_14(s, name, ...) CUSLICE_PARAMETER(s, 14, name), CUSLICE_PARAMETERS_13(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_15(s, name, ...) CUSLICE_PARAMETER(s, 15, name), CUSLICE_PARAMETERS_14(s, __VA_ARGS__)
#define CUSLICE_PARAMETERS_16(s, name, ...) CUSLICE_PARAMETER(s, 16, name), CUSLICE_PARAMETERS_15(s, __VA_ARGS__)
