import { RequestMeters } from "../../../../services/gateway/meters/request-meters.ts";

const nothing = (): void => undefined;

RequestMeters.prototype.requestBegan = nothing;
RequestMeters.prototype.requestEnded = nothing;
RequestMeters.prototype.streamBegan = () => undefined as never;
RequestMeters.prototype.streamEnded = nothing;
