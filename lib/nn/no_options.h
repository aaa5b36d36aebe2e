#pragma once

namespace dtrain {

/// Options of a layer, loss, metric or other registry entry that has no options.
struct NoOptions {};

}  // namespace dtrain
