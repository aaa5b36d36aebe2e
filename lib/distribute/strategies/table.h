// Every strategy of dtrain: each function adds one file's to the table.
#pragma once

#include "distribute/strategy.h"

namespace dtrain {

void add_single(Registry<Strategy>& table);
void add_mirrored(Registry<Strategy>& table);
void add_placed(Registry<Strategy>& table);
void add_pipeline(Registry<Strategy>& table);
void add_sharded(Registry<Strategy>& table);

}  // namespace dtrain
