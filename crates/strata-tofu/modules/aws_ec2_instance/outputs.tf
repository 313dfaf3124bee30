output "id" {
  description = "The id of the instance"
  value       = aws_instance.this.id
}

output "arn" {
  description = "The resource name of the instance"
  value       = aws_instance.this.arn
}

output "private_ip" {
  description = "The address inside its network"
  value       = aws_instance.this.private_ip
}

output "public_ip" {
  description = "The address on the internet; empty if it has none"
  value       = aws_instance.this.public_ip
}
