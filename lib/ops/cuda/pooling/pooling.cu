// Pooling of NHWC images. In the forward pass, each thread computes a few channels of one output pixel. In
// the backward pass, each thread computes a few channels of one source pixel: it adds the gradients of all
// windows that contain the pixel, in a fixed order. If there are few outputs and large windows, as in global
// pooling, all threads of a block share the window of one output pixel.
#include <algorithm>
#include <bit>
#include <limits>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/pooling/volume_pooling.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

/// The windows along one axis.
struct Windows {
  int64_t extent, out, pool, stride, before;
};

struct Range {
  int64_t begin, end;
  __device__ int64_t size() const { return end - begin; }
};

/// Returns the pixels of window `o` that are inside the image.
__device__ Range pixels_of(const Windows& windows, int64_t o) {
  const int64_t begin = o * windows.stride - windows.before, end = begin + windows.pool;
  return {begin > 0 ? begin : 0, end < windows.extent ? end : windows.extent};
}

/// Returns the windows that contain pixel `i`.
__device__ Range windows_of(const Windows& windows, int64_t i) {
  const int64_t place = i + windows.before,
                before = place - windows.pool;  // a window that begins here or earlier ends before the pixel
  const int64_t begin = before < 0 ? 0 : divide(before, windows.stride).quotient + 1;
  const int64_t end = divide(place, windows.stride).quotient + 1;
  return {begin, end < windows.out ? end : windows.out};
}

struct Geometry {
  int64_t batch, channels;
  Windows down, across;
};

constexpr int kThreads = 256;         // threads per block, if each thread computes channels of one pixel
constexpr int kSharingThreads = 512;  // threads per block, if threads share the window of an output pixel

/// The pixels of the window of output (y, x).
struct Window {
  Range down, across;
  int64_t pool_width;  // a pixel's index in the window is row * pool_width + column
  int32_t first;       // index of the first pixel that is inside the image

  __device__ Window(const Geometry& g, int64_t y, int64_t x)
      : down(pixels_of(g.down, y)), across(pixels_of(g.across, x)), pool_width(g.across.pool) {
    const int64_t top = y * g.down.stride - g.down.before, left = x * g.across.stride - g.across.before;
    first = static_cast<int32_t>((down.begin - top) * pool_width + across.begin - left);
  }
  __device__ int64_t pixels() const { return down.size() * across.size(); }
  __device__ int32_t place(int64_t row, int64_t column) const {
    return first + static_cast<int32_t>(row * pool_width + column);
  }
};

/// Stores N indices in accesses of at most 16 bytes.
template <int N, class Index>
__device__ void store_indices(Index* dst, const int32_t (&indices)[N]) {
  constexpr int kStep = kAccess<Index, N>;
#pragma unroll
  for (int first = 0; first < N; first += kStep) {
    Vector<Index, kStep> access;
#pragma unroll
    for (int i = 0; i < kStep; ++i) access.v[i] = static_cast<Index>(indices[first + i]);
    store_access(dst + first, access);
  }
}

template <int N, class Index>
__device__ void load_indices(const Index* src, int32_t (&indices)[N]) {
  constexpr int kStep = kAccess<Index, N>;
  using Access = Vector<Index, kStep>;
#pragma unroll
  for (int first = 0; first < N; first += kStep) {
    const Access access = *reinterpret_cast<const Access*>(src + first);
#pragma unroll
    for (int i = 0; i < kStep; ++i) indices[first + i] = static_cast<int32_t>(access.v[i]);
  }
}

/// Calls visit(image, y, x, channel) for every N channels of [batch, height, width, channels]. Image rows are
/// distributed over blockIdx.y, and the parts of a row over blockIdx.x.
template <int N, class Visit>
__device__ void each_pixel(int64_t batch, int64_t height, int64_t width, int64_t channels,
                           const Visit& visit) {
  const int64_t vectors = channels / N;
  for (int64_t row = blockIdx.y; row < batch * height; row += gridDim.y) {
    const Division of_row = divide(row, height);
    for (int64_t i = thread_index(); i < width * vectors; i += thread_count()) {
      const Division of_column = divide(i, vectors);
      visit(of_row.quotient, of_row.rest, of_column.quotient, of_column.rest * N);
    }
  }
}

/// The mean of N channels of a window.
template <int N>
struct Mean {
  float sums[N];

  __device__ void begin(const Window&) {
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] = 0.0f;
  }
  __device__ void add(const float (&values)[N], int32_t) {
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] += values[i];
  }
  __device__ void merge(const Mean& other) {
    add(other.sums, 0);
  }
  template <class T, class Index>
  __device__ void write(const Window& window, T* dst, Index*, int64_t o) {
    const float count = static_cast<float>(window.pixels());
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] /= count;
    store<N>(dst + o, sums);
  }
};

/// The largest element of each of N channels of a window, and the index of its first occurrence. NaN is never
/// the largest element, because the search starts with the lowest float and every comparison with NaN is
/// false. Pooling on the CPU ignores NaN in the same way.
template <int N>
struct Greatest {
  float best[N];
  int32_t at[N];

  __device__ void begin(const Window& window) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      best[i] = std::numeric_limits<float>::lowest();
      at[i] = window.first;
    }
  }
  __device__ void add(const float (&values)[N], int32_t place) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      at[i] = values[i] > best[i] ? place : at[i];
      best[i] = values[i] > best[i] ? values[i] : best[i];
    }
  }
  __device__ void merge(const Greatest& other) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const bool takes = other.best[i] > best[i] || (other.best[i] == best[i] && other.at[i] < at[i]);
      best[i] = takes ? other.best[i] : best[i];
      at[i] = takes ? other.at[i] : at[i];
    }
  }
  template <class T, class Index>
  __device__ void write(const Window&, T* dst, Index* saved, int64_t o) {
    store<N>(dst + o, best);
    if (saved) store_indices<N>(saved + o, at);
  }
};

/// Each thread computes one output. Pooled is Mean or Greatest.
template <int N, class Pooled, class T, class Index>
__global__ void __launch_bounds__(kThreads) forward_kernel(Geometry g, const T* src, T* dst, Index* saved) {
  each_pixel<N>(
      g.batch, g.down.out, g.across.out, g.channels, [&](int64_t n, int64_t y, int64_t x, int64_t c) {
        const Window window(g, y, x);
        Pooled pooled;
        pooled.begin(window);
        for (int64_t sy = window.down.begin; sy < window.down.end; ++sy) {
          const T* row = src + (n * g.down.extent + sy) * g.across.extent * g.channels + c;
          for (int64_t sx = window.across.begin; sx < window.across.end; ++sx) {
            float values[N];
            load<N>(row + sx * g.channels, values);
            pooled.add(values, window.place(sy - window.down.begin, sx - window.across.begin));
          }
        }
        pooled.write(window, dst, saved, ((n * g.down.out + y) * g.across.out + x) * g.channels + c);
      });
}

/// Block (x, y) computes output pixels y, y + gridDim.y, and so on, for tile x of the channels. A tile has N
/// * `across` channels. A row of `across` adjacent threads (a power of 2) covers the channels of the tile, N
/// channels per thread, and the rows of threads share the pixels of the window. The results of the rows are
/// merged in a fixed order.
template <int N, class Pooled, class T, class Index>
__global__ void __launch_bounds__(kSharingThreads, 1)
    shared_window_kernel(Geometry g, int across, const T* src, T* dst, Index* saved) {
  struct Pixel {
    Floats<N> values;
    int32_t place;
  };
  __shared__ Pooled parts[kSharingThreads / 2];
  const int thread = static_cast<int>(threadIdx.x), row = thread / across, rows = kSharingThreads / across;
  const int64_t c = (int64_t{blockIdx.x} * across + thread % across) * N;
  const bool has_channels = c < g.channels;
  for (int64_t o = blockIdx.y; o < g.batch * g.down.out * g.across.out; o += gridDim.y) {
    const Division of_row = divide(o, g.across.out), of_image = divide(of_row.quotient, g.down.out);
    const Window window(g, of_image.rest, of_row.rest);
    const T* const image = src + of_image.quotient * g.down.extent * g.across.extent * g.channels + c;
    Pooled pooled;
    pooled.begin(window);
    read_ahead<4>(
        row, has_channels ? window.pixels() : 0, rows,
        [&](int64_t i) {
          const Division at = divide(i, window.across.size());
          const int64_t sy = window.down.begin + at.quotient, sx = window.across.begin + at.rest;
          Pixel pixel;
          pixel.place = window.place(at.quotient, at.rest);
          load<N>(image + (sy * g.across.extent + sx) * g.channels, pixel.values.v);
          return pixel;
        },
        [&](int64_t, const Pixel& pixel) { pooled.add(pixel.values.v, pixel.place); });
    for (int half = rows / 2; half > 0; half /= 2) {
      if (row >= half && row < 2 * half) parts[thread - half * across] = pooled;
      __syncthreads();
      if (row < half) pooled.merge(parts[thread]);
      __syncthreads();
    }
    if (row == 0 && has_channels) pooled.write(window, dst, saved, o * g.channels + c);
  }
}

/// Writes diff_src of a pixel: the sum over the windows that contain it. add(sums, y, x, o) adds the
/// contribution of window (y, x), whose output has index o.
template <int N, class T, class AddWindow>
__device__ void gather_windows(const Geometry& g, T* diff_src, int64_t n, int64_t sy, int64_t sx, int64_t c,
                               const AddWindow& add) {
  const Range down = windows_of(g.down, sy), across = windows_of(g.across, sx);
  float sums[N] = {};
  for (int64_t y = down.begin; y < down.end; ++y) {
    const int64_t row = (n * g.down.out + y) * g.across.out;
    for (int64_t x = across.begin; x < across.end; ++x) add(sums, y, x, (row + x) * g.channels + c);
  }
  store<N>(diff_src + ((n * g.down.extent + sy) * g.across.extent + sx) * g.channels + c, sums);
}

template <int N, class T, class Index>
__global__ void __launch_bounds__(kThreads)
    max_backward_kernel(Geometry g, const T* diff_dst, T* diff_src, const Index* saved) {
  each_pixel<N>(
      g.batch, g.down.extent, g.across.extent, g.channels, [&](int64_t n, int64_t sy, int64_t sx, int64_t c) {
        const int64_t down = sy + g.down.before, across = sx + g.across.before;
        const auto add = [&](float(&sums)[N], int64_t y, int64_t x, int64_t o) {
          const int32_t index =
              static_cast<int32_t>((down - y * g.down.stride) * g.across.pool + across - x * g.across.stride);
          float diff[N];
          int32_t greatest[N];
          load<N>(diff_dst + o, diff);
          load_indices<N>(saved + o, greatest);
#pragma unroll
          for (int i = 0; i < N; ++i) sums[i] += greatest[i] == index ? diff[i] : 0.0f;
        };
        gather_windows<N>(g, diff_src, n, sy, sx, c, add);
      });
}

template <int N, class T>
__global__ void __launch_bounds__(kThreads)
    average_backward_kernel(Geometry g, const T* diff_dst, T* diff_src) {
  each_pixel<N>(
      g.batch, g.down.extent, g.across.extent, g.channels, [&](int64_t n, int64_t sy, int64_t sx, int64_t c) {
        const auto add = [&](float(&sums)[N], int64_t y, int64_t x, int64_t o) {
          const float count = static_cast<float>(pixels_of(g.down, y).size() * pixels_of(g.across, x).size());
          float diff[N];
          load<N>(diff_dst + o, diff);
#pragma unroll
          for (int i = 0; i < N; ++i) sums[i] += diff[i] / count;
        };
        gather_windows<N>(g, diff_src, n, sy, sx, c, add);
      });
}

/// T is the element type, Index the type of indices within a window.
template <class T, class Index>
class CudaPooling final : public Pooling {
 public:
  CudaPooling(const CudaContext& context, const PoolingSpec& spec)
      : context_(context),
        spec_(spec),
        geometry_{spec.batch,
                  spec.channels,
                  {spec.height, spec.out_height(), spec.pool_height, spec.stride_height, spec.padding.top},
                  {spec.width, spec.out_width(), spec.pool_width, spec.stride_width, spec.padding.left}} {}

  size_t scratch_bytes() const override { return 0; }
  size_t saved_bytes() const override {
    if (!spec_.training || !is_max()) return 0;
    return static_cast<size_t>(spec_.batch * spec_.out_height() * spec_.out_width() * spec_.channels) *
           sizeof(Index);
  }

  void forward(const void* src, void* dst, void* saved, void*) override {
    const auto* from = static_cast<const T*>(src);
    auto* to = static_cast<T*>(dst);
    auto* indices = spec_.training ? static_cast<Index*>(saved) : nullptr;
    if (is_max()) {
      forward<Greatest>(from, to, indices);
    } else {
      forward<Mean>(from, to, indices);
    }
  }

  void backward(const void* diff_dst, void* diff_src, const void* saved, void*) override {
    const auto* from = static_cast<const T*>(diff_dst);
    auto* to = static_cast<T*>(diff_src);
    const auto* indices = static_cast<const Index*>(saved);
    run(spec_.height, spec_.width, all_aligned(from, to, indices),
        [&](auto width, dim3 grid, unsigned threads) {
          constexpr int N = decltype(width)::value;
          if (is_max()) {
            launch(max_backward_kernel<N, T, Index>, grid, threads, context_.compute(), geometry_, from, to,
                   indices);
          } else {
            launch(average_backward_kernel<N, T>, grid, threads, context_.compute(), geometry_, from, to);
          }
        });
  }

 private:
  bool is_max() const { return spec_.kind == PoolingSpec::Kind::max; }

  template <template <int> class Pooled>
  void forward(const T* src, T* dst, Index* saved) {
    const bool aligned = all_aligned(src, dst, saved);
    if (shares_windows()) return forward_by_blocks<Pooled>(src, dst, saved, aligned);
    run(spec_.out_height(), spec_.out_width(), aligned, [&](auto width, dim3 grid, unsigned threads) {
      constexpr int N = decltype(width)::value;
      launch(forward_kernel<N, Pooled<N>, T, Index>, grid, threads, context_.compute(), geometry_, src, dst,
             saved);
    });
  }

  int64_t outputs() const { return spec_.batch * spec_.out_height() * spec_.out_width(); }

  /// Returns true if the threads of a block should share a window. This is faster if the windows are large
  /// and there are so few outputs that one thread per output would leave most of the device idle.
  bool shares_windows() const {
    constexpr int64_t kLargeWindow = 64, kFewThreads = 2048;
    return spec_.pool_height * spec_.pool_width > kLargeWindow &&
           outputs() * spec_.channels / kVector<T> < kFewThreads * context_.multiprocessors();
  }

  template <template <int> class Pooled>
  void forward_by_blocks(const T* src, T* dst, Index* saved, bool aligned) {
    with_width<T>(aligned && spec_.channels % kVector<T> == 0, [&](auto width) {
      constexpr int N = decltype(width)::value;
      const int64_t vectors = spec_.channels / N;
      const auto across =
          static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(vectors, 32))));
      const dim3 grid(static_cast<unsigned>((vectors + across - 1) / across),
                      static_cast<unsigned>(std::min(kMostRows, outputs())));
      launch(shared_window_kernel<N, Pooled<N>, T, Index>, grid, kSharingThreads, context_.compute(),
             geometry_, static_cast<int>(across), src, dst, saved);
    });
  }

  static constexpr int64_t kMostRows = 65535;  // maximum gridDim.y

  /// Calls start(N, grid, threads), where `grid` and `threads` are the launch size of a kernel. Each thread
  /// of the kernel computes N channels of a pixel of an image of [height, width].
  template <class Start>
  void run(int64_t height, int64_t width, bool aligned, const Start& start) const {
    with_width<T>(aligned && spec_.channels % kVector<T> == 0, [&](auto elements) {
      const int64_t of_row = width * spec_.channels / decltype(elements)::value;
      const int64_t threads = std::min<int64_t>(kThreads, (of_row + 31) / 32 * 32);
      const dim3 grid(static_cast<unsigned>((of_row + threads - 1) / threads),
                      static_cast<unsigned>(std::min(kMostRows, spec_.batch * height)));
      start(elements, grid, static_cast<unsigned>(threads));
    });
  }

  const CudaContext& context_;
  PoolingSpec spec_;
  Geometry geometry_;
};

}  // namespace

std::unique_ptr<Pooling> CudaOps::pooling(const PoolingSpec& spec) {
  if (spec.is_volume()) return volume_pooling(*this, spec);
  std::unique_ptr<Pooling> pooling;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    if (spec.pool_height * spec.pool_width <= 256) {
      pooling = std::make_unique<CudaPooling<T, uint8_t>>(context_, spec);
    } else {
      pooling = std::make_unique<CudaPooling<T, int32_t>>(context_, spec);
    }
  });
  return pooling;
}

}  // namespace dtrain::cuda
