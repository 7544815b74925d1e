import { brokerRows } from "./broker-rows.ts";
import { testScenarios } from "./test-scenarios.ts";

testScenarios("what may become of the broker", brokerRows);
