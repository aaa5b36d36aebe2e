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

  /// Loads samples `range` of the batch into the frame's columns, except columns that are kept on the device:
  /// gather() copies these.
  void load(const Batch& batch, Range range, const Frame& frame);
  /// Copies the columns that are kept on the device into the frame; to be called after load(). `first`:
  /// device pointer to the index in the epoch's order at which the batch begins. A captured graph of this
  /// call serves every batch.
  void gather(const Batch& batch, Range range, const Frame& frame, const int64_t* first);

 private:
  /// Describes how a column is uploaded to the device.
  struct Column {
    GatherSpec spec;  // how rows are converted; each batch sets row_elements, because its rows may be cut
    // Number of elements of a row that is not cut; 0 if other threads have read the rows, already cut to the
    // batch's length.
    int64_t elements = 0;
    Buffer scale, offset;  // device arrays to which the spec points
    bool stored = false;   // whether rows are uploaded in the data set's format, instead of the model's
    Buffer resident;       // all rows, if the column is kept on the device
    /// Returns the number of elements of an uploaded row, for a frame's column.
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
    Buffer order;  // the epoch's order of rows, if the columns are resident
    int64_t order_number = -1;
  };
  struct Staging {
    Buffer host, device;
    std::unique_ptr<Event> uploaded,
        consumed;  // `uploaded`: the copy to the device is done; `consumed`: the device has read that copy
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
