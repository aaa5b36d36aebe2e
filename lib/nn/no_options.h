#pragma once

namespace dtrain {

/// The options of kinds that have none.
struct NoOptions {};

}  // namespace dtrain
