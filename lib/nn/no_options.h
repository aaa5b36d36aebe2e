#pragma once

namespace dtrain {

/// Options of a layer, loss, metric or other registry entry without options.
struct NoOptions {};

}  // namespace dtrain
