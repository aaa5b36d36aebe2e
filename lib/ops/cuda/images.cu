// Kernels that copy or convert elements: blocks of rows, images with borders, and rows of stored data.
#include <initializer_list>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

// A copy without conversion uses the widest unit (up to 16 bytes) by which all sizes and addresses are
// divisible.

using Unit16 = Vector<uint32_t, 4>;

/// Calls use(Unit{}) with the widest unit whose size divides all of these numbers. The numbers are sizes in
/// bytes, or addresses.
template <class Use>
void with_unit(std::initializer_list<int64_t> bytes, Use&& use) {
  int64_t all = 0;
  for (const int64_t number : bytes) all |= number;
  if (all % 16 == 0) return use(Unit16{});
  if (all % 4 == 0) return use(uint32_t{});
  if (all % 2 == 0) return use(uint16_t{});
  use(uint8_t{});
}

int64_t address(const void* pointer) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
}

/// Copies row rows[r] of src to row r of dst. Strides and `columns` are counted in elements of type Unit.
template <class Unit>
struct CopyRows {
  Unit* dst;
  int64_t dst_stride;
  const Unit* src;
  int64_t src_stride;
  RowList rows;
  int64_t columns;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division place = divide(i, columns);
    const int64_t row = rows[place.quotient];
    dst[place.quotient * dst_stride + place.rest] = src[row * src_stride + place.rest];
  }
};

/// Row lengths in bytes.
struct ByteRows {
  int64_t dst_stride, src_stride, columns;
};

void copy_rows(const CudaContext& context, const ByteRows& bytes, void* dst, const void* src,
               const RowList& rows, int64_t n) {
  with_unit({bytes.dst_stride, bytes.src_stride, bytes.columns, address(dst), address(src)}, [&](auto unit) {
    using Unit = decltype(unit);
    constexpr auto kBytes = static_cast<int64_t>(sizeof(Unit));
    for_each<1>(
        context, n * bytes.columns / kBytes, false,
        CopyRows<Unit>{static_cast<Unit*>(dst), bytes.dst_stride / kBytes, static_cast<const Unit*>(src),
                       bytes.src_stride / kBytes, rows, bytes.columns / kBytes});
  });
}

/// The extents of an image, and its position in the padded image. Widths and `left` are counted in elements
/// of the type that the kernel copies (see with_unit()).
struct Frame {
  int64_t height, width, padded_height, padded_width, top, left;
};

template <class Unit>
struct PadImages {
  const Unit* src;
  Unit* padded;
  Frame frame;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division row = divide(i, frame.padded_width), image = divide(row.quotient, frame.padded_height);
    const int64_t x = row.rest - frame.left, y = image.rest - frame.top;
    const bool inside = x >= 0 && x < frame.width && y >= 0 && y < frame.height;
    padded[i] = inside ? src[(image.quotient * frame.height + y) * frame.width + x] : Unit{};
  }
};

template <class Unit>
struct CropImages {
  const Unit* padded;
  Unit* dst;
  Frame frame;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division row = divide(i, frame.width), image = divide(row.quotient, frame.height);
    const int64_t y = image.quotient * frame.padded_height + frame.top + image.rest;
    dst[i] = padded[y * frame.padded_width + frame.left + row.rest];
  }
};

/// Calls use(Frame, Unit{}) for images of `shape` with `element_bytes` bytes per element.
template <class Use>
void with_frame(const Padding2& padding, const Shape& shape, size_t element_bytes, const void* image,
                const void* padded, Use&& use) {
  const int64_t pixel = shape[3] * static_cast<int64_t>(element_bytes);
  const int64_t width = shape[2] * pixel, left = padding.left * pixel, right = padding.right * pixel;
  with_unit({width, left, right, address(image), address(padded)}, [&](auto unit) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(unit));
    use(Frame{shape[1], width / kBytes, padding.top + shape[1] + padding.bottom,
              (left + width + right) / kBytes, padding.top, left / kBytes},
        unit);
  });
}

template <class From, class To>
struct Cast {
  const From* src;
  To* dst;

  template <int N>
  __device__ void run(int64_t i) const {
    float values[N];
    load(src + i, values);
    store(dst + i, values);
  }
};

template <class From, class To>
struct GatherRows {
  const From* src;
  RowList rows;
  To* dst;
  int64_t columns, stride;  // stride: elements from one source row to the next
  const float *scale, *offset;
  bool scale_is_row;  // false: the scale is a single number

  /// If N is greater than 1, the number of columns and the stride must be multiples of N.
  template <int N>
  __device__ void run(int64_t i) const {
    const Division place = divide(i, columns);
    const int64_t row = rows[place.quotient];
    float values[N], scales[N], offsets[N];
    load(src + row * stride + place.rest, values);
    if (scale_is_row) {
      load(scale + place.rest, scales);
      load(offset + place.rest, offsets);
#pragma unroll
      for (int j = 0; j < N; ++j) values[j] = values[j] * scales[j] + offsets[j];
    } else if (scale) {
#pragma unroll
      for (int j = 0; j < N; ++j) values[j] = values[j] * *scale + *offset;
    }
    store(dst + i, values);
  }
};

template <class To>
void gather_rows_as(const CudaContext& context, const GatherSpec& spec, const void* src, const RowList& rows,
                    int64_t n, To* dst) {
  const bool scale_is_row = spec.scale && spec.scale_elements > 1;
  const bool vectors = spec.row_elements % kVector<To> == 0 && spec.stride() % kVector<To> == 0 &&
                       all_aligned(src, dst) && (!scale_is_row || all_aligned(spec.scale, spec.offset));
  with_any_type(spec.from, [&](auto from) {
    using From = decltype(from);
    for_each<kVector<To>>(context, n * spec.row_elements, vectors,
                          GatherRows<From, To>{static_cast<const From*>(src), rows, dst, spec.row_elements,
                                               spec.stride(), spec.scale, spec.offset, scale_is_row});
  });
}

}  // namespace

void CudaOps::copy_block(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                         int64_t columns) {
  const auto element = static_cast<int64_t>(bytes_of(math_.type));
  copy_rows(context_, {dst_stride * element, src_stride * element, columns * element}, dst, src, {}, rows);
}

void CudaOps::pad_images(const Padding2& padding, const void* src, void* padded, const Shape& src_shape) {
  with_frame(padding, src_shape, bytes_of(math_.type), src, padded, [&](const Frame& frame, auto unit) {
    using Unit = decltype(unit);
    for_each<1>(context_, src_shape[0] * frame.padded_height * frame.padded_width, false,
                PadImages<Unit>{static_cast<const Unit*>(src), static_cast<Unit*>(padded), frame});
  });
}

void CudaOps::crop_images(const Padding2& padding, const void* padded, void* dst, const Shape& dst_shape) {
  with_frame(padding, dst_shape, bytes_of(math_.type), dst, padded, [&](const Frame& frame, auto unit) {
    using Unit = decltype(unit);
    for_each<1>(context_, dst_shape[0] * frame.height * frame.width, false,
                CropImages<Unit>{static_cast<const Unit*>(padded), static_cast<Unit*>(dst), frame});
  });
}

void CudaOps::gather_rows(const GatherSpec& spec, const void* src, const RowList& rows, int64_t n,
                          void* dst) {
  if (spec.from != spec.to || spec.scale) {
    return with_type(spec.to, [&](auto type) {
      gather_rows_as(context_, spec, src, rows, n, static_cast<decltype(type)*>(dst));
    });
  }
  const auto element = static_cast<int64_t>(bytes_of(spec.from)), row_bytes = spec.row_elements * element;
  copy_rows(context_, {row_bytes, spec.stride() * element, row_bytes}, dst, src, rows, n);
}

void CudaOps::cast(void* dst, DType to, const void* src, DType from, int64_t n) {
  if (n <= 0) return;
  if (from == to) {
    const size_t bytes = static_cast<size_t>(n) * bytes_of(from);
    return check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream()), "copying an array");
  }
  const bool vectors = all_aligned(dst, src);
  with_type(to, [&](auto to_type) {
    with_any_type(from, [&](auto from_type) {
      using To = decltype(to_type);
      using From = decltype(from_type);
      for_each<kVector<To>>(context_, n, vectors,
                            Cast<From, To>{static_cast<const From*>(src), static_cast<To*>(dst)});
    });
  });
}

}  // namespace dtrain::cuda
