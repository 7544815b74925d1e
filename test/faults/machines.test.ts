import { machineRows } from "./machine-rows.ts";
import { testScenarios } from "./test-scenarios.ts";

testScenarios("what may become of a machine", machineRows);
