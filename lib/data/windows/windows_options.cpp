#include "data/windows/windows_options.h"

#include <fmt/format.h>

#include "data/located_error.h"

namespace dtrain {

namespace {

Schema<WindowsOptions> make_windows_schema() {
  constexpr int64_t kMost = int64_t{1} << 30;
  Schema<WindowsOptions> schema(
      "Makes samples of time series from the rows of a reader (csv, npy or hdf5). Each sample is a window. "
      "The inputs of a sample are `length` consecutive rows of one series, with the shape [length, "
      "features]. The targets of a sample are the targets of the next `horizon` rows. Windows may overlap.");
  schema.example("{length: 96, horizon: 24, by: series_id, time: timestamp}");
  schema
      .required("length", &WindowsOptions::length,
                "number of consecutive rows that are the inputs of a sample", between<int64_t>(1, kMost))
      .optional("horizon", &WindowsOptions::horizon,
                "number of rows after the inputs whose targets are predicted", between<int64_t>(1, kMost))
      .optional("stride", &WindowsOptions::stride,
                "number of rows between the starts of two consecutive windows. Default: 1, so that windows "
                "overlap as much as possible",
                between<int64_t>(1, kMost))
      .optional("by", &WindowsOptions::by,
                "the column (csv), file (npy) or dataset (hdf5) that contains the name of the series of each "
                "row. A window never contains rows of two series. Default: all rows are one series")
      .optional("time", &WindowsOptions::time,
                "the column (csv), file (npy) or dataset (hdf5) that contains the time of each row, as a "
                "number or a date. The rows of each series are sorted by time. Default: the rows are already "
                "in the order of time")
      .optional(
          "past_targets", &WindowsOptions::past_targets,
          "whether past values of the target columns are also used as inputs. Only for csv. Default: true")
      .rule([](const WindowsOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
        if (options.by && options.by == options.time)
          diagnostics.error(node,
                            fmt::format("windows: 'by' must name the column of the series and 'time' the "
                                        "column of the times, but both are '{}'; give two different columns",
                                        *options.by));
      });
  return schema;
}

}  // namespace

const Schema<WindowsOptions>& WindowsOptions::schema() {
  static const Schema<WindowsOptions> schema = make_windows_schema();
  return schema;
}

std::string WindowsOptions::columns_read() const {
  return fmt::format("windows by {}, time {}, past targets {}\n", by.value_or("none"), time.value_or("none"),
                     has_past_targets());
}

std::string why_no_windows_fit(const WindowsOptions& windows, const TensorSpec& wanted, bool target) {
  const int64_t rows = target ? windows.horizon : windows.length;
  const Shape& shape = wanted.shape;
  if (target && rows == 1 && shape.rank() == 0) return "";
  const bool has_features = target || wanted.dtype != DType::float32 || shape.rank() >= 2;
  if (shape.rank() > 0 && shape[0] == rows && has_features) return "";
  const std::string name = wanted.name.empty() ? "" : fmt::format(" '{}'", wanted.name);
  return target ? fmt::format(
                      "windows: the model's output{} must give predictions of the shape {} or "
                      "{}x(targets), because the horizon is {}, but gives the shape {}; with `units: auto`, "
                      "the last layer gets the right size",
                      name, rows, rows, rows, shape.str())
                : fmt::format(
                      "windows: the model's input{} must have the shape {}x(features), because the length is "
                      "{}, but has the shape {}",
                      name, rows, rows, shape.str());
}

std::vector<TensorSpec> rows_of_windows(const std::optional<WindowsOptions>& windows,
                                        std::vector<TensorSpec> wanted, bool targets) {
  if (!windows) return wanted;
  for (TensorSpec& spec : wanted) {
    if (const std::string why = why_no_windows_fit(*windows, spec, targets); !why.empty())
      throw LocatedError(windows->mark, why);
    const std::vector<int64_t>& extents = spec.shape.extents();
    spec.shape = Shape(std::vector<int64_t>(extents.begin() + (extents.empty() ? 0 : 1), extents.end()));
  }
  return wanted;
}

}  // namespace dtrain
