import { clientRows } from "./client-rows.ts";
import { testScenarios } from "./test-scenarios.ts";

testScenarios("what a client may do", clientRows);
