import { gatewayRows } from "./gateway-rows.ts";
import { testScenarios } from "./test-scenarios.ts";

testScenarios("what may become of a gateway", gatewayRows);
