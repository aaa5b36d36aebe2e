// Uploads a batch's samples to a replica.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "collective/collective.h"
#include "data/loader/loader.h"
#include "ops/ops.h"
#include "program/frame.h"

namespace dtrain {

/// Fills the columns of a frame that are on one slot of a replica; to be used by that slot's thread. On the
/// CPU, samples are read directly into the frame. For a GPU, samples are read in their stored format into one
/// of two staging buffers, uploaded while the previous step computes, and converted on the device. For a data
/// set that is kept on the device, only the order of an epoch's samples is uploaded.
class Feed {
 public:
  explicit Feed(Ops& ops) : ops_(ops), context_(ops.context()) {}

  /// Loads samples `range` of the batch into the frame's columns. Skips columns that are kept on the device,
  /// because gather() copies these columns.
  void load(const Batch& batch, Range range, const Frame& frame);
  /// Copies the columns that are kept on the device into the frame; to be called after load(). `first`:
  /// pointer to device memory that contains the index of the batch's first row in the epoch's order. Because
  /// the index is read from device memory, a captured graph of this call can be replayed for every batch.
  void gather(const Batch& batch, Range range, const Frame& frame, const int64_t* first);

 private:
  /// Describes how a column is uploaded to the device.
  struct Column {
    // How rows are converted; row_elements is set for each batch, because a batch may have truncated rows.
    GatherSpec spec;
    // Number of elements of a complete row in the data set. 0 if the batch has no data set: in this case,
    // other threads have already read the rows and truncated them to the batch's length.
    int64_t elements = 0;
    Buffer scale, offset;  // device arrays to which the spec points
    // Whether rows are uploaded in the stored format of the data set, instead of the model's format.
    bool stored = false;
    Buffer resident;  // all rows of the column in device memory, if the column is kept there
    /// Returns the number of elements of an uploaded row. `view`: the column in a frame.
    int64_t row_elements(const View& view) const {
      return elements > 0 ? elements : view.elements() / view.shape[0];
    }
    size_t row_bytes(const View& view) const {
      return static_cast<size_t>(row_elements(view)) * bytes_of(spec.from);
    }
    GatherSpec spec_for(const View& view) const {
      GatherSpec its = spec;
      its.row_elements = view.elements() / view.shape[0];
      its.src_elements = row_elements(view);
      return its;
    }
  };
  struct Source {
    std::vector<Column> columns;
    Buffer order;  // row indices in the epoch's order; empty if the data set is not kept on the device
    int64_t order_number = -1;
  };
  struct Staging {
    Buffer host, device;
    std::unique_ptr<Event> uploaded;  // recorded after the copy to `device`
    std::unique_ptr<Event> consumed;  // recorded after the device has read `device`
  };

  Source& source_of(const Dataset* dataset, const Frame& frame);
  Buffer on_device(std::span<const float> values);
  void make_resident(Column& column, const Dataset& dataset, size_t index, const View& view);
  void load_order(Source& source, const BatchSource& from);
  void load_staged(Source& source, const Batch& batch, Range range, const Frame& frame);
  void read(const Source& source, const Batch& batch, Range range, std::span<void* const> to,
            const Frame& frame);

  Ops& ops_;
  Context& context_;
  std::map<const Dataset*, Source> sources_;
  std::array<Staging, 2> staging_;
  size_t next_ = 0;  // index of the next staging buffer
};

}  // namespace dtrain
