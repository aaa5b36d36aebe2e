// The option `groups` of conv1d, conv2d and conv3d.
#pragma once

#include <string>

#include "config/schema.h"
#include "nn/layer.h"
#include "nn/layers/common.h"

namespace dtrain {

/// Reports an error at the option `groups` in `options` if the number of filters is not a multiple of groups.
/// `kind` is the name of the layer in the message.
void check_groups(const std::string& kind, int64_t groups, int64_t filters, const ConfigNode& options,
                  Diagnostics& diagnostics);
/// Returns whether the number of input channels is a multiple of groups. Reports an error otherwise.
bool has_whole_groups(const TensorSpec& input, int64_t groups, int64_t filters,
                      const ReportError& report_error);

/// Adds the option to a schema. write() omits the option if it is 1, because the options in older checkpoints
/// do not have it.
template <class Options>
Schema<Options> with_groups(Schema<Options> schema, const std::string& kind) {
  schema
      .optional("groups", &Options::groups,
                "Number of groups into which the input channels and the filters are divided, in order. The "
                "filters of a group read only the channels of the same group. The number of input channels "
                "and `filters` must be multiples of `groups`.",
                extent())
      .omit_default("groups")
      .rule([kind](const Options& o, const ConfigNode& node, Diagnostics& diagnostics) {
        check_groups(kind, o.groups, o.filters, node, diagnostics);
      });
  return schema;
}

}  // namespace dtrain
