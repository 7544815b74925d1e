import { cellRows } from "./cell-rows.ts";
import { testScenarios } from "./test-scenarios.ts";

testScenarios("killed and frozen, at every phase", cellRows);
