import { Settlements } from "../../../../services/gateway/settlement/settlements.ts";

// Only where no key has limits: what a request holds is never given back.
Settlements.prototype.end = () => undefined;
