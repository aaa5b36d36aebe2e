// The differences between oneDNN 2.6 (Debian 12) and oneDNN 3 (3.1 in Ubuntu 24.04, 3.7 in Debian 13). No
// other file depends on the version.
#pragma once

#include <dnnl.hpp>
#include <tuple>

namespace dtrain::cpu {

/// Advances the descriptor to the first implementation for which accept(descriptor) is true. Throws
/// dnnl::error if there is no such implementation.
template <class Desc, class Accept>
Desc first_accepted(Desc desc, const Accept& accept) {
  while (!accept(desc))
    if (!desc.next_impl()) throw dnnl::error(dnnl_unimplemented, "no implementation is accepted");
  return desc;
}

#if DNNL_VERSION_MAJOR >= 3

/// True if pooling descriptors take a dilation.
constexpr bool kDilatedPooling = true;
/// True if a batch normalization descriptor takes separate descriptors for the source and the destination
/// (and for their gradients). False if it takes one descriptor for both (and one for both gradients).
constexpr bool kBothImages = true;
/// True if the backward pass of a batch normalization with use_shift takes the argument DNNL_ARG_SHIFT.
/// oneDNN 2 reads this argument; oneDNN 3 rejects it.
constexpr bool kBackwardTakesShift = false;

inline void append_activation(dnnl::post_ops& post_ops, dnnl::algorithm kind, float alpha) {
  post_ops.append_eltwise(kind, alpha, 0);
}

/// Returns the descriptor of the first implementation of a primitive for which accept(descriptor) is true.
/// `forward` holds the forward primitive's descriptor if Primitive is a backward primitive, and is empty
/// otherwise. Throws dnnl::error if there is no such implementation.
template <class Primitive, class Accept, class... Hint, class... Arguments>
auto describe_accepted(const Accept& accept, const dnnl::engine& engine,
                       const dnnl::primitive_attr& attributes, const std::tuple<Hint...>& forward,
                       const Arguments&... arguments) {
  return std::apply(
      [&](const Hint&... hint) {
        return first_accepted(typename Primitive::primitive_desc(engine, arguments..., hint..., attributes),
                              accept);
      },
      forward);
}

#else

constexpr bool kDilatedPooling = false;
constexpr bool kBothImages = false;
constexpr bool kBackwardTakesShift = true;

inline void append_activation(dnnl::post_ops& post_ops, dnnl::algorithm kind, float alpha) {
  post_ops.append_eltwise(1, kind, alpha, 0);
}

template <class Primitive, class Accept, class... Hint, class... Arguments>
auto describe_accepted(const Accept& accept, const dnnl::engine& engine,
                       const dnnl::primitive_attr& attributes, const std::tuple<Hint...>& forward,
                       const Arguments&... arguments) {
  return std::apply(
      [&](const Hint&... hint) {
        // `operation` must live as long as the search, because the search for other implementations reads it.
        const typename Primitive::desc operation(arguments...);
        return first_accepted(typename Primitive::primitive_desc(operation, attributes, engine, hint...),
                              accept);
      },
      forward);
}

#endif

/// Returns the descriptor of the first implementation of a primitive. The arguments have the same meaning as
/// for describe_accepted().
template <class Primitive, class... Hint, class... Arguments>
auto describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
              const std::tuple<Hint...>& forward, const Arguments&... arguments) {
  return describe_accepted<Primitive>([](const auto&) { return true; }, engine, attributes, forward,
                                      arguments...);
}

}  // namespace dtrain::cpu
