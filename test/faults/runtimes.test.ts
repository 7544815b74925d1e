import { runtimeRows } from "./runtime-rows.ts";
import { testScenarios } from "./test-scenarios.ts";

testScenarios("what may become of a runtime", runtimeRows);
