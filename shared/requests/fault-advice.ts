import type { FaultCode } from "../fault/fault.ts";

/** Advice about the faults in which requests end, for whoever runs the site. A client reads the message of its fault. */
export const faultAdvice: Readonly<Partial<Record<FaultCode, string>>> = {
  context_length_exceeded: "Shorten the prompt, or ask a model with a larger window (trunkline models).",
  model_does_not_support_tools: "Ask a model with tools; trunkline models shows which have them.",
  model_not_found: "Compare the name with trunkline models, and with the scopes of the key (trunkline keys show).",
  key_invalid: "The key was revoked or disabled while the request ran; trunkline keys log says who did it.",
  key_expired: "The key expired while the request ran; trunkline keys extend makes it valid for longer.",
  rate_limit_requests: "The key is over its requests a minute; trunkline keys change --rpm raises them.",
  rate_limit_tokens: "The key is over its tokens a minute; trunkline keys change --tpm raises them.",
  loads_not_allowed: "The key may cause no loads; trunkline keys change --loads lets it.",
  rate_limit_loads:
    "The key had as many models loaded as it may; trunkline keys change --loads raises that, trunkline models keep holds one in memory.",
  concurrency_limit_exceeded:
    "The key has as many requests under way as it may; trunkline keys change --concurrency raises that.",
  insufficient_quota:
    "A budget is spent; the message names whose. For a key, trunkline keys change --budget or --spend raises it.",
  agent_offline: "No machine with the model was reachable; trunkline status says since when and why.",
  agent_disconnected:
    "The machine was lost while it answered; look at its power, its network and the log of its agent.",
  runtime_offline: "The model server on the machine did not answer; start it there, and see trunkline status.",
  upstream_error: "The model server failed; its own log on the machine says why.",
  upstream_timeout: "The model server was silent for too long; look at its load and its own log.",
  poison_request:
    "Machines were lost under this request one after the other, so no other is asked; look at what it asks for.",
  stream_gap: "A part of the answer was lost between machine and gateway; look at the network between them.",
  model_loading:
    "The model was not in memory in time; TRUNKLINE_LOAD_WAIT_MS on the machine lets requests wait longer, more memory keeps more models.",
  server_is_overloaded: "All machines with the model were full; add one, or raise TRUNKLINE_QUEUE_MAX on one.",
  backend_unavailable: "The gateway had lost its broker or its store; trunkline doctor says which.",
  shutting_down: "The machine or the gateway was stopping; the next request finds another.",
  gateway_lost:
    "The gateway was killed while it answered; the log of its host says why, and another one serves the next request.",
  client_closed: "The client closed its connection; its own time-out may be too short for this model.",
  cancelled_by_operator: "An operator of the site cancelled it; the trail says who and when.",
  slow_client: "The client did not read its answer; look at the client and the network to it.",
  internal_error: "This is a bug of Trunkline; the gateway's log has the error with this id.",
};
