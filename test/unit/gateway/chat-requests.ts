import { readChatRequest } from "../../../services/gateway/apis/chat/chat-request.ts";
import { reading } from "./reading-requests.ts";

export const hello = { role: "user", content: "Hello" };
export const weather = { type: "function", function: { name: "weather", parameters: { type: "object" } } };
export const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };

const chats = reading(readChatRequest, { model: "llama3", messages: [hello] });
export const { read: readChat, thrownBy, faultOf } = chats;
