import type { ServerResponse } from "node:http";
import { FakeAnswer } from "./fake-answer.ts";
import type { FakeRequest } from "./fake-openai-server.ts";

/** How one kind of server writes what goes wrong. */
export interface ErrorForm {
  error(status: number, message: string): object;
}

/** What an answer is to, and whose it is. */
export interface AnswerTo<Form> {
  readonly request: FakeRequest;
  readonly response: ServerResponse;
  readonly form: Form;
  /** As the server calls it, whatever it was asked for. */
  readonly model: string;
}

/** The answer to one question, as a test gives it in events. */
export abstract class FakeEvents<Form extends ErrorForm> extends FakeAnswer {
  readonly request: FakeRequest;
  protected readonly form: Form;
  protected readonly model: string;

  constructor({ request, response, form, model }: AnswerTo<Form>) {
    super(response, "text/event-stream");
    this.request = request;
    this.form = form;
    this.model = model;
  }

  /** One event with this as its data. */
  event(data: object): void {
    this.raw(`data: ${JSON.stringify(data)}\n\n`);
  }

  /** Refuses the request in this server's form, or with exactly this body. */
  refuse(status: number, error: string | object): void {
    const body = typeof error === "string" ? this.form.error(status, error) : error;
    this.refuseWith(status, { contentType: "application/json", body: JSON.stringify(body) });
  }

  protected get wantsUsage(): boolean {
    const options = this.request.body["stream_options"];
    return (
      typeof options === "object" && options !== null && "include_usage" in options && options.include_usage === true
    );
  }
}
